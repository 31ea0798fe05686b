/**
 * Calls that a model wrote at the end of its reasoning instead of in its reply.
 */
import type { SieveEvent } from "../domain/ReplyEvent.ts"
import { CallArguments, CallFinished, CallStarted } from "../domain/ReplyEvent.ts"
import { run } from "../stream/transducer.ts"
import type { SieveOptions } from "./sieve.ts"
import { sieve } from "./sieve.ts"

/**
 * The events of the complete calls that `reasoning` ends with, with nothing but blanks between and after them; none when there are
 * none. To be asked only of a reply that ended with neither text nor calls. Indexes count from 0.
 */
export const reasoningCalls = (options: SieveOptions, reasoning: string): Array<SieveEvent> => {
  const found: Array<CallFinished> = []
  const events = run(sieve({ tools: options.tools, callId: String }), [reasoning])
  for (let i = events.length - 1; i >= 0; i--) {
    const event = events[i]!
    if (event._tag === "CallFinished") found.push(event)
    else if (event._tag === "CallCutOff" || (event._tag === "TextDelta" && event.text.trim() !== "")) break
  }
  return found.reverse().flatMap((call, index) => {
    const id = options.callId(index)
    return [
      CallStarted(index, id, call.name),
      CallArguments(index, call.arguments),
      CallFinished(index, id, call.name, call.arguments)
    ]
  })
}
