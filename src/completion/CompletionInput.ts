/** Input and output of a completion. */
import type { NonEmptyReadonlyArray } from "effect/Array"
import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { Caller } from "../accounts/Accounts.ts"
import type { GatewayConfig } from "../config/GatewayConfig.ts"
import type { Conversation } from "../domain/Conversation.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import type { Maker } from "../domain/makers.ts"
import type { ReplyEvent } from "../domain/ReplyEvent.ts"
import type { Route } from "../domain/routes.ts"
import type { Request } from "./Request.ts"

/** A completion request of a style. */
export interface CompletionInput {
  readonly caller: Caller
  readonly model: Route
  readonly conversation: Conversation
  readonly request: Request
  /** The text of a streamed reply stays in memory until its end, for a last frame that repeats it. */
  readonly kept: boolean
}

/** A completion request while the gateway serves it. */
export interface ServedInput extends CompletionInput {
  /** The configuration when the completion started; it holds for the whole request. */
  readonly config: GatewayConfig
  /** The conversation that is sent once more if the first one is too long for the model; `undefined` without a shorter one. */
  readonly shorter: (() => Conversation | undefined) | undefined
  /** The replies that it is made of; 1 unless given. */
  readonly replies: number
  /** A limit of the key is strict: the reply keeps to what is reserved. */
  readonly isStrict: boolean
  /** The error of a request whose model is the fallback of a limit, if the fallback cannot serve it. */
  readonly refusal: GatewayError | undefined
}

/** The limit of output of a summary that the gateway asks for, in tokens. */
export const mostSummaryTokens = 8_192

/** What a reply is made for. */
export type Asked = Pick<ServedInput, "conversation" | "shorter">

/** Makes the replies of one request, one after the other. They are one request for the limits of its key and for usage. */
export interface Replies {
  readonly stream: (asked: Asked) => Effect.Effect<CompletionOutput, GatewayError>
  readonly whole: (asked: Asked) => Effect.Effect<CompletedReply, GatewayError>
}

/** Events of one chunk. */
export type Batch = NonEmptyReadonlyArray<ReplyEvent>

/** A reply that has started. */
export interface CompletionOutput {
  /** The reply's id: the upstream session's. */
  readonly id: string
  /** The account that answers, if its server can store the response; absent for other ones. */
  readonly maker: Maker | undefined
  /** The driver's name; `embedded` for the upstream inside the gateway. */
  readonly driver: string
  /**
   * The reply, which ends with `Finish` or fails; for one reader. Chunks are never empty, and the first one is available immediately.
   * The account is released with the last chunk, when the stream fails, or when the surrounding scope closes.
   */
  readonly events: Stream.Stream<ReplyEvent, GatewayError>
}

/** A complete reply; the account has been released. */
export interface CompletedReply extends Omit<CompletionOutput, "events"> {
  /** All events; consecutive pieces of a text are one event. */
  readonly events: Batch
}
