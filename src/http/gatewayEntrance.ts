/**
 * Who calls the gateway: checks the business key, and counts the request for it. Starts what follows the request: usage, the record, a
 * rehearsal.
 */
import * as Effect from "effect/Effect"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as Layer from "effect/Layer"
import { Callers } from "../accounts/Callers.ts"
import { admitUncounted, enterRequest, keyOf } from "../completion/admission.ts"
import { rehearsalHeader } from "../completion/Rehearsal.ts"
import { UsageRecorder } from "../completion/UsageRecorder.ts"
import { ConfigStore } from "../config/ConfigStore.ts"
import { sha256Hex } from "../config/json.ts"
import { ClientIdentity } from "../domain/clientIdentity.ts"
import { recordedHead } from "../recordings/redactRound.ts"
import { Requests } from "../recordings/Requests.ts"
import type { Reserved } from "../usage/Admission.ts"
import { KeyLimits } from "../usage/KeyLimits.ts"
import { clientAddress } from "./clientAddress.ts"
import { type Entered, Entrance } from "./Entrance.ts"
import { Rehearsals, unknownRehearsal } from "./Rehearsals.ts"
import { credentialOf, gatewayKeyOf, missingCredential } from "./RequestContext.ts"

/** Whether the body of a request is still to come. Node has read what came with its head by the next turn of the event loop. */
const isArriving = ({ source }: HttpServerRequest.HttpServerRequest): Effect.Effect<boolean> =>
  Effect.map(
    Effect.yieldNow,
    () => source instanceof globalThis.Request ? source.body !== null : Reflect.get(source, "complete") !== true
  )

export const layerEntrance: Layer.Layer<Entrance, never, Callers | ConfigStore | KeyLimits | UsageRecorder> = Layer
  .effect(
    Entrance,
    Effect.map(
      // An embedding application may leave recordings out.
      Effect.all([
        Callers,
        ConfigStore,
        UsageRecorder,
        KeyLimits,
        Effect.serviceOption(Requests),
        Effect.serviceOption(Rehearsals)
      ]),
      ([callers, config, recorder, limits, requests, rehearsals]) =>
        Entrance.of({
          look: ({ caller, request }) => admitUncounted(limits, caller, request),
          enter: (source, request, { unrecorded }) => {
            const { followers, stats } = request
            if (unrecorded !== true) followers.usage = recorder
            const token = credentialOf(source)
            const target = source.headers["x-gateway-target-account"]?.trim()
            if (token === undefined) return Effect.fail(missingCredential)
            // The refusal of a disabled or expired key counts as a request of that key.
            const identified = Effect.catchEager(
              callers.identify(
                token,
                target === "" ? undefined : target,
                clientAddress(source, config.now().server),
                gatewayKeyOf(source)
              ),
              (error) => {
                stats.key = callers.keyOf(token) ?? request.key
                return Effect.fail(error)
              }
            )
            return Effect.flatMapEager(identified, (caller) => {
              const key = keyOf(caller)
              stats.key = key
              const { privacy } = config.now()
              const identity = new ClientIdentity(source.headers, privacy.sessions, sha256Hex)
              stats.identity = identity
              const known = (entered?: Reserved): Entered => ({
                caller,
                request: { ...request, key, identity, entered }
              })
              if (source.method !== "POST") return Effect.succeed(known())
              if (requests._tag === "Some") {
                followers.recording = requests.value.begin({
                  facts: stats,
                  key,
                  head: () => {
                    const { upstreams } = config.now()
                    const secret = [...upstreams.values()].flatMap(({ credential_header }) => credential_header ?? [])
                    return recordedHead(source, privacy, secret)
                  },
                  secret: token
                })
              }
              const admitted = limits.limitsRunning(key)
                ? Effect.map(enterRequest(limits, key, stats, isArriving(source)), known)
                : Effect.succeed(known())
              const rehearsed = source.headers[rehearsalHeader]
              if (rehearsed === undefined) return admitted
              const taken = rehearsals._tag === "Some"
                ? rehearsals.value.take(rehearsed)
                : Effect.fail(unknownRehearsal)
              return Effect.flatMap(admitted, (entered) =>
                Effect.map(taken, (rehearsal): Entered => {
                  stats.rehearsed = 0
                  return { ...entered, request: { ...entered.request, rehearsal } }
                }))
            })
          }
        })
    )
  )
