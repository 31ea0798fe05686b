/**
 * A request that is a single call of the upstream: its answer is whole when it arrives. Attempts are those of all requests.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type { AccountPool, Caller, Lease } from "../accounts/Accounts.ts"
import { type Deadlines, withDeadline } from "../config/clock/Deadlines.ts"
import type { GatewayConfig } from "../config/GatewayConfig.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import type { Model } from "../domain/models.ts"
import type { Route, Target } from "../domain/routes.ts"
import type { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import type { Driver } from "../upstream/Upstream.ts"
import { attemptOverdue, Attempts, type AttemptWork } from "./attempts.ts"
import type { RequestStats } from "./RequestStats.ts"

/** The call, and who makes it. */
interface LeasedCall<A> {
  readonly caller: Caller
  readonly config: GatewayConfig
  readonly stats: RequestStats
  /** What was asked for. */
  readonly model: Route
  /** Whether a driver can make the call. */
  readonly canCall: (driver: Driver) => boolean
  /** Returns the error for a driver that cannot make the call. */
  readonly refuse: (driver: Driver) => GatewayError | undefined
  readonly call: (driver: Driver, model: Model, token: string | undefined) => Effect.Effect<A, UpstreamFailure>
}

class CallAttempt<A> implements AttemptWork<A, A> {
  readonly caller: Caller
  readonly stats: RequestStats
  private readonly input: LeasedCall<A>
  private readonly deadlines: Deadlines["Service"]

  constructor(input: LeasedCall<A>, deadlines: Deadlines["Service"]) {
    this.input = input
    this.deadlines = deadlines
    this.caller = input.caller
    this.stats = input.stats
  }

  get route(): Route {
    return this.input.model
  }

  canCarry(driver: Driver): boolean {
    return this.input.canCall(driver)
  }

  refuse(driver: Driver): GatewayError | undefined {
    return this.input.refuse(driver)
  }

  begin(lease: Lease, { model }: Target, _: Scope.Scope, most: number): Effect.Effect<A, UpstreamFailure> {
    const called = Effect.flatMap(lease.credential.token, (token) => this.input.call(lease.driver, model, token))
    return withDeadline(
      Effect.tap(called, () => lease.report(undefined, undefined)),
      this.deadlines,
      most,
      attemptOverdue
    )
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
    new Attempts(new CallAttempt(input, deadlines), {
      accounts,
      deadlines,
      config: input.config,
      scope,
      traced: false
    }).open()
  )
