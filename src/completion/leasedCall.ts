/**
 * A request that is a single call of the upstream: its answer is whole when it arrives. Its attempts are made as for all requests.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type { AccountPool, Caller, Lease } from "../accounts/Accounts.ts"
import { hasBudgets } from "../accounts/budgets.ts"
import { type Deadlines, withDeadline } from "../config/clock/Deadlines.ts"
import type { GatewayConfig } from "../config/GatewayConfig.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import type { Route, Target } from "../domain/routes.ts"
import type { MonotonicSource } from "../domain/time.ts"
import type { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import { type AnswerHeaders, RequestBudget } from "../upstream/budget.ts"
import type { Driver } from "../upstream/Upstream.ts"
import { attemptOverdue, AttemptWork } from "./Attempt.ts"
import { Attempts } from "./attempts.ts"
import type { Request } from "./Request.ts"
import { countPrompt, estimateAtEnd } from "./SentPrompt.ts"
import type { Budgeted } from "./TryBudget.ts"

/** The call, and who makes it. */
interface LeasedCall<A> {
  readonly caller: Caller
  readonly config: GatewayConfig
  readonly request: Request
  /** What was asked for. */
  readonly model: Route
  /** Whether a driver can make the call. */
  readonly canCall: (driver: Driver) => boolean
  /** Returns the error for a driver that cannot make the call. */
  readonly refuse: (driver: Driver, target: Target) => GatewayError | undefined
  readonly call: (
    driver: Driver,
    target: Target,
    token: string | undefined,
    budget: RequestBudget
  ) => Effect.Effect<A, UpstreamFailure>
  /** Fails immediately without a free slot. */
  readonly isImpatient: boolean
  /** Estimates the tokens of the prompt; `undefined` for a call that uses none. */
  readonly promptTokens: Effect.Effect<number> | undefined
}

class CallAttempt<A> extends AttemptWork<A, A> {
  readonly caller: Caller
  readonly request: Request
  readonly #input: LeasedCall<A>
  readonly #deadlines: Deadlines["Service"]
  readonly #budget: RequestBudget
  /** Estimated tokens of the prompt; 0 until they are needed. */
  #tokens: number

  constructor(input: LeasedCall<A>, deadlines: Deadlines["Service"], clock: MonotonicSource, tokens: number) {
    super()
    this.#input = input
    this.#tokens = tokens
    this.#deadlines = deadlines
    this.#budget = new RequestBudget(input.config.limits, clock)
    this.caller = input.caller
    this.request = input.request
  }

  get route(): Route {
    return this.#input.model
  }

  override get isImpatient(): boolean {
    return this.#input.isImpatient
  }

  canServe(driver: Driver): boolean {
    return this.#input.canCall(driver)
  }

  refuse(driver: Driver, target: Target): GatewayError | undefined {
    return this.#input.refuse(driver, target)
  }

  budgeted(): Budgeted {
    return { promptTokens: () => this.#tokens, bounds: undefined }
  }

  begin(lease: Lease, target: Target, attempt: Scope.Scope, most: number): Effect.Effect<A, UpstreamFailure> {
    const budget = this.#budget
    const input = this.#input
    const { request: { stats } } = this
    const { promptTokens } = input
    budget.isSent = false
    budget.heard = undefined
    const called = Effect.flatMap(lease.credential.token, (token) => input.call(lease.driver, target, token, budget))
    const answered = withDeadline(
      Effect.tap(called, () => {
        // A driver of an app may not say when its request leaves.
        budget.isSent = true
        return lease.report(undefined, undefined)
      }),
      this.#deadlines,
      most,
      attemptOverdue
    )
    if (promptTokens === undefined) return answered
    countPrompt(stats, budget, () => this.#tokens)
    const estimate = Effect.map(promptTokens, (tokens) => this.#tokens = tokens)
    return Effect.andThen(estimateAtEnd(attempt, stats, budget, estimate), answered)
  }

  heard(): AnswerHeaders | undefined {
    return this.#budget.heard
  }

  output(reply: A, _: Lease, attempt: Scope.Closeable): Effect.Effect<A> {
    return Effect.as(Scope.close(attempt, Exit.void), reply)
  }
}

/** Makes the call on leases of the pool. Fails with the error to send. */
export const leasedCall = <A>(
  accounts: AccountPool,
  deadlines: Deadlines["Service"],
  input: LeasedCall<A>
): Effect.Effect<A, GatewayError> =>
  Effect.scopedWith((scope) =>
    Effect.withFiber((fiber) => {
      const { config, promptTokens } = input
      const open = (tokens: number) =>
        new Attempts(new CallAttempt(input, deadlines, fiber.getRef(Clock.Clock), tokens), {
          accounts,
          deadlines,
          config,
          scope,
          traced: false
        }).open()
      return promptTokens !== undefined && hasBudgets(config) ? Effect.flatMap(promptTokens, open) : open(0)
    })
  )
