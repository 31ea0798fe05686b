/**
 * `model-gateway/sieve`: tool calls out of the text of models that write them as text, without the rest of the gateway.
 *
 * On a `Stream` it is one operator, `sieveStream`. Without a stream, start a machine for each reply, push the pieces as they come, and
 * end it:
 *
 * ```ts
 * const machine = sieve({ tools, callId: (index) => `call_${index}` })()
 * const events: Array<SieveEvent> = []
 * for (const piece of pieces) machine.push(piece, events)
 * machine.end(events)
 * ```
 *
 * The events do not depend on how the text is cut. They are text, without any character of a call, and for each call its start, its
 * arguments as they arrive, and its end. `CallFinished` has arguments that are a JSON object; `CallCutOff` marks a call that must not
 * run. Names of calls are not checked against the declared tools, except in forms that could otherwise be an answer.
 *
 * `declareTools` declares tools to a model; `renderCall` and `renderResult` show it earlier calls and results in the form that it is
 * asked to write. `disarm` keeps a caller's own text from looking like either.
 */
import type * as Stream from "effect/Stream"
import type { SieveEvent } from "./domain/ReplyEvent.ts"
import { transduce } from "./domain/stream/transduce.ts"
import { sieve, type SieveOptions } from "./sieve/sieve.ts"

export type { JsonSchema, ToolChoice, ToolDeclaration } from "./domain/Conversation.ts"
export type { Json } from "./domain/json.ts"
export type {
  CallArguments,
  CallCutOff,
  CallFinished,
  CallStarted,
  SieveEvent,
  TextDelta
} from "./domain/ReplyEvent.ts"
export { declareTools, reminder } from "./sieve/declaration.ts"
export { disarm } from "./sieve/disarm.ts"
export { renderCall, renderResult } from "./sieve/history.ts"
export { ReasoningCalls, reasoningCalls } from "./sieve/reasoningCalls.ts"
export { sieve, type SieveOptions } from "./sieve/sieve.ts"

/** Options of `sieveStream`. Without `callId`, calls are `call_0`, `call_1` and so on. */
export interface SieveStreamOptions extends Omit<SieveOptions, "callId"> {
  readonly callId?: SieveOptions["callId"] | undefined
}

/** Sieves a stream of text: emits text and calls as they are decided, however the text is cut. */
export const sieveStream = (
  { callId = (index) => `call_${index}`, tools }: SieveStreamOptions
): <E, R>(text: Stream.Stream<string, E, R>) => Stream.Stream<SieveEvent, E, R> => transduce(sieve({ tools, callId }))
