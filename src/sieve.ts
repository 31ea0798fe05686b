/**
 * `model-gateway/sieve`: tool calls out of the text of models that write them as text.
 */
import type * as Stream from "effect/Stream"
import type { SieveEvent } from "./domain/ReplyEvent.ts"
import { transduce } from "./domain/stream/transduce.ts"
import { sieve } from "./sieve/sieve.ts"
import type { SieveOptions } from "./sieve/sieve.ts"

export type { Json, JsonSchema, ToolChoice, ToolDeclaration } from "./domain/Conversation.ts"
export type { CallArguments, CallCutOff, CallFinished, CallStarted, TextDelta } from "./domain/ReplyEvent.ts"
export * from "./sieve/index.ts"

/** How `sieveStream` sieves; without `callId`, calls are `call_0`, `call_1` and so on. */
export interface SieveStreamOptions extends Omit<SieveOptions, "callId"> {
  readonly callId?: SieveOptions["callId"] | undefined
}

/** The sieve on any stream of text: text and calls as they are decided, however the text is cut. */
export const sieveStream = (
  { callId = (index) => `call_${index}`, tools }: SieveStreamOptions
): <E, R>(text: Stream.Stream<string, E, R>) => Stream.Stream<SieveEvent, E, R> => transduce(sieve({ tools, callId }))
