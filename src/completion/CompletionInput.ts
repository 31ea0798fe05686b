/** What goes into a completion, and what comes out once its reply has begun. */
import type { NonEmptyReadonlyArray } from "effect/Array"
import type * as Pull from "effect/Pull"
import type * as Stream from "effect/Stream"
import type { Caller } from "../accounts/Accounts.ts"
import type { GatewayConfig } from "../config/GatewayConfig.ts"
import type { Conversation } from "../domain/Conversation.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import type { Model } from "../domain/models.ts"
import type { ReplyEvent } from "../domain/ReplyEvent.ts"
import type { RequestStats } from "./RequestStats.ts"

/** What a style hands down. */
export interface CompletionInput {
  readonly caller: Caller
  readonly model: Model
  readonly conversation: Conversation
  readonly stats: RequestStats
  /** The configuration that was in effect when the request began: all of it is done by that. */
  readonly config: GatewayConfig
  /** The caller gets the reply in one piece: none of it is shown before its end, so that every failure may be tried again. */
  readonly whole?: boolean
  /** All of a streamed reply's text stays in memory until its end, as where the last frame repeats it. */
  readonly kept?: boolean
}

/** A reply that has begun. */
export interface CompletionOutput {
  /** The upstream session's id, by which the reply goes. */
  readonly id: string
  /** The name of the driver that answers; `embedded` for the upstream inside the gateway. */
  readonly driver: string
  /** All events, where the reply was wanted whole; the account has been given back then. */
  readonly whole?: NonEmptyReadonlyArray<ReplyEvent> | undefined
  /**
   * The reply; ends with `Finish`, or fails. Its chunks are never empty and the first one is there already. The account is
   * given back when the stream ends, fails or is left.
   */
  readonly events: Stream.Stream<ReplyEvent, GatewayError>
  /**
   * What `events` is made of, for one reader in its place who costs no scope and no stream: the account is given back at the
   * end, or when the scope closes in which the reply was opened. Absent where the reply is not made by attempts.
   */
  readonly pull?: Pull.Pull<NonEmptyReadonlyArray<ReplyEvent>, GatewayError> | undefined
}
