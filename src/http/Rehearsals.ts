/**
 * The tokens of rehearsals. Each is in the memory of the node that made it, counts for one request within a minute, and works at every node:
 * another node asks the one that the token names.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { randomBytes } from "node:crypto"
import { Nodes } from "../admin/nodes/Nodes.ts"
import { answerQuery, askOne } from "../admin/nodes/Query.ts"
import type { Rehearsal } from "../completion/Rehearsal.ts"
import { rehearsalHeader } from "../completion/Rehearsal.ts"
import { type GatewayError, gatewayError, invalidRequest } from "../domain/GatewayError.ts"
import { monotonicMillis } from "../domain/time.ts"

/** Milliseconds for which a token is valid. */
export const rehearsalMillis = 60_000

/** The most tokens of a node that are valid at the same time. */
export const mostRehearsals = 100

/** Characters of a token beyond which none is asked for. */
const longestToken = 200

/** The refusal of a token that is not valid. */
export const unknownRehearsal = invalidRequest(
  "The token in X-Gateway-Rehearsal is unknown, was used already, or is older than a minute",
  rehearsalHeader
)

/** The question to the node that has made a token. The answer is a route and its failing targets; empty for a token that is not valid. */
const taking = {
  name: "take-rehearsal",
  question: Schema.String,
  answer: Schema.fromJsonString(Schema.Array(Schema.String))
}

export class Rehearsals extends Context.Service<Rehearsals, {
  /** Makes a token. Fails with `rate_limit_exceeded` while too many are valid. */
  readonly open: (rehearsal: Rehearsal) => Effect.Effect<string, GatewayError>
  /** Uses a token up. Fails with `invalid_request` if it is not valid, and if its node does not answer. */
  readonly take: (token: string) => Effect.Effect<Rehearsal, GatewayError>
}>()("model-gateway/http/Rehearsals") {
  static readonly layer: Layer.Layer<Rehearsals, never, Nodes> = Layer.effect(
    Rehearsals,
    Effect.gen(function*() {
      const { id, peers } = yield* Nodes
      const clock = yield* Clock.Clock
      const open = new Map<string, { readonly rehearsal: Rehearsal; readonly until: number }>()

      /** Forgets what is over: tokens are in the order in which they end. */
      const sweep = (now: number) => {
        for (const [secret, { until }] of open) {
          if (until > now) return
          open.delete(secret)
        }
      }
      const own = (secret: string): Rehearsal | undefined => {
        sweep(monotonicMillis(clock))
        const found = open.get(secret)
        open.delete(secret)
        return found?.rehearsal
      }

      answerQuery(peers, taking, (secret) =>
        Effect.sync(() => {
          const rehearsal = own(secret)
          return rehearsal === undefined ? [] : [rehearsal.route, ...rehearsal.without]
        }))
      const ask = askOne(peers, taking)

      return Rehearsals.of({
        open: (rehearsal) =>
          Effect.suspend(() => {
            const now = monotonicMillis(clock)
            sweep(now)
            const [oldest] = open.values()
            if (open.size >= mostRehearsals && oldest !== undefined) {
              return Effect.fail(
                gatewayError(
                  "rate_limit_exceeded",
                  `At most ${mostRehearsals} rehearsals may wait for their requests`,
                  {
                    retryAfter: Math.ceil((oldest.until - now) / 1_000)
                  }
                )
              )
            }
            const secret = randomBytes(24).toString("base64url")
            open.set(secret, { rehearsal, until: now + rehearsalMillis })
            return Effect.succeed(`${id}.${secret}`)
          }),
        take: (token) => {
          const dot = token.lastIndexOf(".")
          if (dot === -1 || token.length > longestToken) return Effect.fail(unknownRehearsal)
          const node = token.slice(0, dot)
          const secret = token.slice(dot + 1)
          const taken = node === id
            ? Effect.sync(() => own(secret))
            : Effect.map(ask(node, secret), (answer): Rehearsal | undefined => {
              const [route, ...targets] = answer ?? []
              return route === undefined ? undefined : { route, without: new Set(targets) }
            })
          return Effect.flatMap(
            taken,
            (rehearsal) => rehearsal === undefined ? Effect.fail(unknownRehearsal) : Effect.succeed(rehearsal)
          )
        }
      })
    })
  )
}
