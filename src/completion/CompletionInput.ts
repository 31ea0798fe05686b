/** What goes into a completion, and what comes out once its reply has begun. */
import type { NonEmptyReadonlyArray } from "effect/Array"
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
  /** All of a streamed reply's text stays in memory until its end, as where the last frame repeats it. */
  readonly kept?: boolean
}

/** Events that came together. */
export type Batch = NonEmptyReadonlyArray<ReplyEvent>

/** A reply that has begun. */
export interface CompletionOutput {
  /** The upstream session's id, by which the reply goes. */
  readonly id: string
  /** The name of the driver that answers; `embedded` for the upstream inside the gateway. */
  readonly driver: string
  /**
   * The reply; ends with `Finish`, or fails. Its chunks are never empty and the first one is there already. The account is
   * given back with the last chunk, when the stream fails, or when the scope closes in which it was opened. For one reader.
   */
  readonly events: Stream.Stream<ReplyEvent, GatewayError>
}

/** A reply that is complete; the account has been given back. */
export interface CompletedReply extends Omit<CompletionOutput, "events"> {
  /** All events; neighbouring pieces of one text are one event. */
  readonly events: Batch
}
