/**
 * The operator who makes a request of the admin API, as its edge has found.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"

/** A credential that was right. */
export interface Operator {
  /** Whether it still is: it may expire, be ended by a logout, or by a change of the password. */
  readonly holds: Effect.Effect<boolean>
}

export class CurrentOperator extends Context.Service<CurrentOperator, Operator>()("model-gateway/admin/Operator") {}
