/**
 * Calls that a model writes at the end of its reasoning instead of in its reply.
 */
import type { SieveEvent } from "../domain/ReplyEvent.ts"
import { CallArguments, CallFinished, CallStarted } from "../domain/ReplyEvent.ts"
import type { Sieve, SieveOptions } from "./sieve.ts"
import { sieve } from "./sieve.ts"

/** A complete call. */
export type FoundCall = Pick<CallFinished, "name" | "arguments">

/**
 * Follows reasoning and keeps the complete calls that it ends with, with nothing but blanks between and after them. Holds
 * those calls and what the sieve holds, never the reasoning itself.
 */
export class ReasoningCalls {
  private readonly sieve: Sieve
  private readonly events: Array<SieveEvent> = []
  private found: Array<FoundCall> = []
  private foundChars = 0

  constructor(tools: SieveOptions["tools"]) {
    this.sieve = sieve({ tools, callId: String })()
  }

  push(reasoning: string): void {
    if (!this.sieve.passes(reasoning, this.events)) this.take()
    else if (this.found.length > 0 && reasoning.trim() !== "") this.forget()
  }

  /** Characters that it holds. */
  get held(): number {
    return this.foundChars + this.sieve.held
  }

  /** The calls at the end of the reasoning, which is over. Ask it only of a reply that has neither text nor calls. */
  end(): ReadonlyArray<FoundCall> {
    this.sieve.end(this.events)
    this.take()
    return this.found
  }

  private take(): void {
    for (const event of this.events) {
      if (event._tag === "CallFinished") {
        this.found.push({ name: event.name, arguments: event.arguments })
        this.foundChars += event.name.length + event.arguments.length
      } else if (event._tag === "CallCutOff" || (event._tag === "TextDelta" && event.text.trim() !== "")) this.forget()
    }
    this.events.length = 0
  }

  private forget(): void {
    this.found = []
    this.foundChars = 0
  }
}

/** The events of the calls that a whole reasoning ends with. Indexes count from 0. */
export const reasoningCalls = ({ callId, tools }: SieveOptions, reasoning: string): Array<SieveEvent> => {
  const calls = new ReasoningCalls(tools)
  calls.push(reasoning)
  return calls.end().flatMap(({ arguments: args, name }, index) => {
    const id = callId(index)
    return [CallStarted(index, id, name), CallArguments(index, args), CallFinished(index, id, name, args)]
  })
}
