/**
 * Relayed requests: the server gets them as they are, on an account of the pool, by the attempts of all requests. A failure before the first
 * bytes of the reply may be retried; later ones end the reply.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type { AccountPool, Caller, Lease } from "../accounts/Accounts.ts"
import { type Deadlines, withDeadline } from "../config/clock/Deadlines.ts"
import type { GatewayConfig } from "../config/GatewayConfig.ts"
import { type GatewayError, gatewayError } from "../domain/GatewayError.ts"
import type { Route, Target } from "../domain/routes.ts"
import { type ChunkPull, mapPull } from "../domain/stream/transduce.ts"
import type { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import { placeOfUpstream } from "../domain/upstreamNames.ts"
import type { Captures } from "../recordings/Captures.ts"
import type { AnswerHeaders, RequestBudget } from "../upstream/budget.ts"
import type { Driver, RelayedBody, RelayedReply } from "../upstream/Upstream.ts"
import { attemptOverdue, AttemptWork, progressEvery } from "./Attempt.ts"
import { Attempts } from "./attempts.ts"
import type { AttemptSpan } from "./attemptSpan.ts"
import { brokenOff } from "./openReply.ts"
import type { Request } from "./Request.ts"
import { countPrompt } from "./SentPrompt.ts"
import type { ServerWords } from "./serverWords.ts"
import type { Budgeted } from "./TryBudget.ts"

/** The body of a relayed request. */
export interface RelayedSource {
  /** The body with the server's name of the model. */
  readonly body: (model: string) => RelayedBody
  /** Bytes of a body that can be sent only once have left. */
  readonly isSpent: boolean
  /** Bytes that have left so far. */
  readonly sent: number
  /** The body is not sent again. */
  readonly release: () => void
}

/** A relayed request. */
export interface RelayInput {
  readonly caller: Caller
  readonly config: GatewayConfig
  readonly model: Route
  readonly request: Request
  /** Below the address of the API's version: `/rerank`. */
  readonly path: string
  readonly accept: string
  readonly source: RelayedSource
  /** Estimated tokens of the request. */
  readonly promptTokens: number
  /** The most that it uses at each target of a model. */
  readonly bounds: Budgeted["bounds"]
  /** Makes the request's budget, at the first lease. */
  readonly makeBudget: () => RequestBudget
}

/** The services of relayed requests. */
export interface RelayServices {
  readonly accounts: AccountPool
  readonly captures: Captures["Service"]
  readonly deadlines: Deadlines["Service"]
}

/** A relayed reply that has started. */
export interface OpenRelayed extends Omit<RelayedReply, "bytes"> {
  readonly budget: RequestBudget
  /** A strict budget of its account or upstream has reserved the most that it can use. */
  readonly isBounded: boolean
  /** The bytes, of which the first ones have arrived; for one reader. The account is released after the last bytes, or with the failure. */
  readonly bytes: Stream.Stream<Uint8Array, GatewayError>
}

/** The error of an upstream whose driver relays nothing. */
export const notRelayed = (driver: string, path: string, upstream: string): GatewayError =>
  gatewayError(
    "not_found",
    `The upstream has no /v1${path}: the driver "${driver}" does not carry it. Ask the gateway's operator.`,
    { cause: { setting: `${placeOfUpstream(upstream)}.driver openai does, if the server has it` } }
  )

/** The attempts of one relayed request. */
class RelayAttempt extends AttemptWork<RelayedReply, OpenRelayed> {
  readonly caller: Caller
  readonly request: Request
  readonly #input: RelayInput
  readonly #services: RelayServices
  #budget: RequestBudget | undefined
  #isBounded = false

  constructor(input: RelayInput, services: RelayServices) {
    super()
    this.#input = input
    this.#services = services
    this.caller = input.caller
    this.request = input.request
  }

  get route(): Route {
    return this.#input.model
  }

  canServe({ capabilities }: Driver): boolean {
    return capabilities.relay !== undefined
  }

  refuse(driver: Driver, { upstream }: Target): GatewayError | undefined {
    return driver.capabilities.relay === undefined ? notRelayed(driver.name, this.#input.path, upstream) : undefined
  }

  budgeted(): Budgeted {
    const { bounds, promptTokens } = this.#input
    return { promptTokens: () => promptTokens, bounds }
  }

  override bounded(): void {
    this.#isBounded = true
  }

  override isSpent(): boolean {
    return this.#input.source.isSpent
  }

  begin(
    lease: Lease,
    { model }: Target,
    attempt: Scope.Scope,
    most: number
  ): Effect.Effect<RelayedReply, UpstreamFailure | GatewayError> {
    const { accept, makeBudget, path, promptTokens, request, source } = this.#input
    const { captures, deadlines } = this.#services
    const { relay } = lease.driver.capabilities
    const budget = this.#budget ??= makeBudget()
    let sent = 0
    budget.startReply()
    budget.isSent = false
    budget.heard = undefined
    countPrompt(request.stats, budget, () => promptTokens)
    const relayed = Effect.flatMap(lease.credential.token, (token) =>
      Scope.provide(
        relay!({
          model,
          token,
          path,
          accept,
          body: (name) => source.body(name),
          budget,
          callerHeaders: request.callerHeaders,
          recorder: captures.recorder(
            { identifier: lease.account?.identifier, upstream: lease.upstream },
            request.id,
            request.followers.recording
          )
        }),
        attempt
      ))
    const reply = withDeadline(relayed, deadlines, most, attemptOverdue, () => {
      const isGrowing = source.sent > sent
      sent = source.sent
      return isGrowing ? progressEvery : 0
    })
    return Effect.flatMap(reply, (reply) => {
      request.stats.firstEventAt = deadlines.now()
      request.followers.recording?.progressed()
      source.release()
      return Effect.as(lease.report(undefined, undefined), reply)
    })
  }

  heard(): AnswerHeaders | undefined {
    return this.#budget?.heard
  }

  output(
    { bytes, ...reply }: RelayedReply,
    lease: Lease,
    attempt: Scope.Closeable,
    _: AttemptSpan | undefined,
    words: ServerWords
  ): Effect.Effect<OpenRelayed> {
    const released = mapPull<Uint8Array, UpstreamFailure, Uint8Array, GatewayError>((pull) =>
      Effect.catch(pull, (end): ChunkPull<never, GatewayError> =>
        Cause.isDone(end)
          ? Effect.andThen(Scope.close(attempt, Exit.void), Cause.done())
          : Effect.flatMap(
            brokenOff(lease, words, end, this.request.stats),
            (error) => Effect.andThen(Scope.close(attempt, Exit.fail(error)), Effect.fail(error))
          ))
    )
    return Effect.succeed({ ...reply, bytes: released(bytes), budget: this.#budget!, isBounded: this.#isBounded })
  }
}

/** Relays a request until its reply starts. Fails with the error to send. The scope holds the account and the connection. */
export const relay = (
  services: RelayServices,
  input: RelayInput
): Effect.Effect<OpenRelayed, GatewayError, Scope.Scope> =>
  Effect.flatMap(Effect.scope, (scope) => {
    const { accounts, deadlines } = services
    return new Attempts(new RelayAttempt(input, services), {
      accounts,
      deadlines,
      config: input.config,
      scope,
      traced: false
    }).open()
  })
