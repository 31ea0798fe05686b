/**
 * Embeddings from the upstream, on an account of the pool, by the attempts of all requests.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type { AccountPool, Caller, Lease } from "../accounts/Accounts.ts"
import { type Deadlines, withDeadline } from "../config/clock/Deadlines.ts"
import type { GatewayConfig } from "../config/GatewayConfig.ts"
import type { ServerFields } from "../domain/families/Family.ts"
import { type GatewayError, gatewayError } from "../domain/GatewayError.ts"
import type { Model } from "../domain/models.ts"
import type { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import type { Driver, EmbeddingsReply } from "../upstream/Upstream.ts"
import { attemptOverdue, Attempts, type AttemptWork } from "./attempts.ts"
import type { RequestStats } from "./RequestStats.ts"
import { noteUncarried } from "./unsentFields.ts"

/** A request for vectors. */
interface EmbedInput {
  readonly caller: Caller
  readonly config: GatewayConfig
  readonly model: Model
  /** Texts, or texts as token ids. */
  readonly inputs: ReadonlyArray<string | ReadonlyArray<number>>
  readonly dimensions: number | undefined
  /** Fields of the caller's body for the server. */
  readonly fields?: ServerFields | undefined
  readonly stats: RequestStats
}

const unsupported = gatewayError(
  "embeddings_unavailable",
  "The upstream makes no embeddings: embeddings.provider upstream needs an OpenAI-compatible server"
)

/** The attempts of one request for vectors. */
class EmbedAttempt implements AttemptWork<EmbeddingsReply, EmbeddingsReply> {
  readonly caller: Caller
  readonly stats: RequestStats
  private readonly input: EmbedInput
  private readonly deadlines: Deadlines["Service"]

  constructor(input: EmbedInput, deadlines: Deadlines["Service"]) {
    this.input = input
    this.deadlines = deadlines
    this.caller = input.caller
    this.stats = input.stats
  }

  refuse(driver: Driver): GatewayError | undefined {
    const { fields, stats } = this.input
    if (driver.embed === undefined) return unsupported
    if (fields !== undefined) noteUncarried(fields, driver, stats)
    return undefined
  }

  begin(lease: Lease, _: Scope.Scope, most: number): Effect.Effect<EmbeddingsReply, UpstreamFailure> {
    const { dimensions, fields, inputs, model } = this.input
    const { embed } = lease.driver
    const embedded = Effect.flatMap(
      lease.credential.token,
      (token) => embed!({ model, inputs, dimensions, fields, token })
    )
    return withDeadline(
      Effect.tap(embedded, () => lease.report(undefined, undefined)),
      this.deadlines,
      most,
      attemptOverdue
    )
  }

  output(reply: EmbeddingsReply, _: Lease, attempt: Scope.Closeable): Effect.Effect<EmbeddingsReply> {
    return Effect.as(Scope.close(attempt, Exit.void), reply)
  }
}

/** Requests the vectors of all inputs. Fails with the error to send. */
export const embedUpstream = (
  accounts: AccountPool,
  deadlines: Deadlines["Service"],
  input: EmbedInput
): Effect.Effect<EmbeddingsReply, GatewayError> =>
  Effect.scopedWith((scope) =>
    new Attempts(new EmbedAttempt(input, deadlines), {
      accounts,
      deadlines,
      config: input.config,
      scope,
      traced: false
    }).open()
  )
