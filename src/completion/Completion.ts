/**
 * The completion service as styles and apps see it: what makes a reply of a conversation. `makeCompletion.ts` has the gateway's own.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Caller } from "../accounts/Accounts.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import type { Maker } from "../domain/makers.ts"
import type { Route } from "../domain/routes.ts"
import type { FamilyName } from "../domain/VendorFields.ts"
import type { CompletedReply, CompletionInput, CompletionOutput, Replies } from "./CompletionInput.ts"

export type { CompletedReply, CompletionInput, CompletionOutput }

/** A server that compacts conversations. */
export interface Compactor {
  /** It has made no compaction that it was asked for: the gateway makes them for the next ten minutes. */
  readonly failed: () => void
}

/** Runs completions. */
export class Completion extends Context.Service<Completion, {
  /**
   * Starts a reply. Fails with the error to send if no attempt succeeds. The scope holds the account and the connection; closing
   * it early stops the upstream.
   */
  readonly stream: (input: CompletionInput) => Effect.Effect<CompletionOutput, GatewayError, Scope.Scope>
  /** Makes a whole reply: every failure up to its end may be retried. */
  readonly whole: (input: CompletionInput) => Effect.Effect<CompletedReply, GatewayError, Scope.Scope>
  /**
   * Deletes a response that an account's server stores, as far as the server does that in time. A caller's own token goes to its upstream
   * alone.
   */
  readonly forget: (caller: Caller, maker: Maker, id: string) => Effect.Effect<void>
  /** Counts the tokens of a conversation; `undefined` if the upstream counts none, or has no slot free now. The scope holds the limits. */
  readonly count: (input: CompletionInput) => Effect.Effect<number | undefined, GatewayError, Scope.Scope>
  /** Opens what `make` makes of several replies. */
  readonly together: <A>(
    input: CompletionInput,
    make: (replies: Replies) => Effect.Effect<A, GatewayError>
  ) => Effect.Effect<A, GatewayError, Scope.Scope>
  /** True if a target of the route may get a request of this contract as its caller wrote it. */
  readonly passesWhole: (route: Route, family: FamilyName) => boolean
  /** The server that compacts conversations on a route; `undefined` if the gateway has to. */
  readonly compactor: (route: Route, caller: Caller) => Compactor | undefined
}>()("model-gateway/completion/Completion") {}
