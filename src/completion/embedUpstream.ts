/**
 * Embeddings from the upstream, on an account of the pool, by the attempts of all requests.
 */
import * as Effect from "effect/Effect"
import type { AccountPool, Caller } from "../accounts/Accounts.ts"
import type { Deadlines } from "../config/clock/Deadlines.ts"
import type { GatewayConfig } from "../config/GatewayConfig.ts"
import type { ServerFields } from "../contracts/shared/Family.ts"
import type { EmbeddingsReply, VendorInputs } from "../domain/Embeddings.ts"
import { type GatewayError, gatewayError } from "../domain/GatewayError.ts"
import { normalizeModelName } from "../domain/models.ts"
import type { Route, Target } from "../domain/routes.ts"
import { leasedCall } from "./leasedCall.ts"
import type { Request } from "./Request.ts"
import { promptUsage } from "./SentPrompt.ts"
import { noteUnpassed, noteVendorInputs } from "./unsentFields.ts"

/** A request for vectors. */
interface EmbedInput {
  readonly caller: Caller
  readonly config: GatewayConfig
  readonly model: Route
  /** Texts, or texts as token ids. */
  readonly inputs: ReadonlyArray<string | ReadonlyArray<number>>
  readonly dimensions: number | undefined
  /** The vendor's own fields of each input. */
  readonly own: VendorInputs | undefined
  /** Fields of the caller's body for the server. */
  readonly fields: ServerFields | undefined
  readonly request: Request
  /** Estimates the tokens of the inputs. */
  readonly estimate: Effect.Effect<number>
}

const unsupported = gatewayError(
  "embeddings_unavailable",
  "The upstream of this model has no embeddings. Ask the gateway's operator.",
  { cause: { setting: "embeddings.provider" } }
)

/**
 * The route with targets of one model alone, since vectors of two models do not mix: the first model whose driver makes embeddings. That
 * its upstream is disabled or fails chooses no other model.
 */
const ofOneModel = (route: Route, driverOf: AccountPool["driverOf"]): Route => {
  const { targets } = route
  if (targets.length === 1) return route
  const first = targets.find(({ upstream }) => driverOf(upstream)?.capabilities.embed !== undefined) ?? targets[0]!
  const id = normalizeModelName(first.model.id)
  return { ...route, targets: targets.filter(({ model }) => normalizeModelName(model.id) === id) }
}

/**
 * The task of all inputs as a field of a server whose `upstream.fields` lists that: other servers may refuse a field that the caller did
 * not write.
 */
const taskFields = (
  { upstreams }: GatewayConfig,
  { upstream }: Target,
  own: VendorInputs | undefined
): ServerFields | undefined => {
  const inputType = own?.task?.inputType
  const fields = upstreams.get(upstream)?.fields
  return inputType !== undefined && Array.isArray(fields) && fields.includes("input_type")
    ? { input_type: inputType }
    : undefined
}

/** The vectors of all inputs, with the tokens that the upstream counts, or else their estimate. */
interface EmbeddedInputs extends Pick<EmbeddingsReply, "vectors"> {
  readonly promptTokens: number
}

/** Requests the vectors of all inputs. Fails with the error to send. */
export const embedUpstream = (
  accounts: AccountPool,
  deadlines: Deadlines["Service"],
  { caller, config, dimensions, estimate, fields, inputs, model, own, request }: EmbedInput
): Effect.Effect<EmbeddedInputs, GatewayError> => {
  const { stats } = request
  let estimated = 0
  const called = leasedCall(accounts, deadlines, {
    caller,
    config,
    request,
    model: ofOneModel(model, accounts.driverOf),
    canCall: ({ capabilities }) => capabilities.embed !== undefined,
    refuse: (driver, target) => {
      if (driver.capabilities.embed === undefined) return unsupported
      if (fields !== undefined) noteUnpassed(fields, driver, request)
      if (own?.family !== driver.contract) noteVendorInputs(own, stats, taskFields(config, target, own) !== undefined)
      return undefined
    },
    call: ({ capabilities }, target, token, budget) =>
      Effect.map(
        capabilities.embed!({
          model: target.model,
          inputs,
          dimensions,
          own,
          fields: { ...taskFields(config, target, own), ...fields },
          token,
          budget,
          callerHeaders: request.callerHeaders
        }),
        (reply) => {
          const { details, tokens } = reply
          if (tokens !== undefined) stats.usage = { ...promptUsage(tokens), details }
          return reply
        }
      ),
    isImpatient: false,
    promptTokens: Effect.map(estimate, (tokens) => estimated = tokens)
  })
  return Effect.map(called, ({ tokens, vectors }) => ({ vectors, promptTokens: tokens ?? estimated }))
}
