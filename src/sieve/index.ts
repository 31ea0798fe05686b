/**
 * Tool calls for models that write them as text: what embedders import.
 *
 * The sieve is a pure transducer, usable on any stream of text pieces without the rest of the gateway. Start a machine for each reply,
 * push the pieces as they come, and end it:
 *
 * ```ts
 * const machine = sieve({ tools, callId: (index) => `call_${index}` })()
 * const events: Array<SieveEvent> = []
 * for (const piece of pieces) machine.push(piece, events)
 * machine.end(events)
 * ```
 *
 * On a `Stream<string>` of Effect it is one operator, which takes whole chunks:
 *
 * ```ts
 * Stream.mapAccumArray(
 *   text,
 *   sieve(options),
 *   (machine, pieces) => {
 *     const events: Array<SieveEvent> = []
 *     for (const piece of pieces) machine.push(piece, events)
 *     return [machine, events]
 *   },
 *   {
 *     onHalt: (machine) => {
 *       const events: Array<SieveEvent> = []
 *       machine.end(events)
 *       return events
 *     }
 *   }
 * )
 * ```
 *
 * However the text is cut, the events say the same: text (never a character of a call), and for each call its start, its arguments as
 * they arrive, and its end. `CallFinished` has arguments that are a JSON object; `CallCutOff` says that the call must not be run. Names
 * of calls are not checked against the declared tools, except where a form is likely to be an answer otherwise.
 *
 * `declareTools` tells a model of its tools, and `renderCall` and `renderResult` show it earlier calls and results, in the form that
 * it is asked to write. `disarm` keeps a caller's own text from looking like either.
 */
export type { SieveEvent } from "../domain/ReplyEvent.ts"
export { declareTools, reminder } from "./declaration.ts"
export { disarm } from "./disarm.ts"
export { renderCall, renderResult } from "./history.ts"
export { ReasoningCalls, reasoningCalls } from "./reasoningCalls.ts"
export type { SieveOptions } from "./sieve.ts"
export { sieve } from "./sieve.ts"
