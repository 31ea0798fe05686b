/**
 * Finds the calls that a model writes at the end of its reasoning instead of in its reply.
 */
import { CallArguments, CallFinished, CallStarted, type SieveEvent } from "../domain/ReplyEvent.ts"
import { type Sieve, sieve, type SieveOptions } from "./sieve.ts"

/** A complete call. */
type FoundCall = Pick<CallFinished, "name" | "arguments">

/**
 * Sieves reasoning and keeps the complete calls at its end, with only blanks between and behind them. It holds those calls and what the
 * sieve holds, but not the reasoning.
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

  /** Characters in memory. */
  get held(): number {
    return this.foundChars + this.sieve.held
  }

  /** Ends the reasoning and returns its last calls. They count only for a reply that has neither text nor calls. */
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

/** The events of the calls at the end of a whole reasoning text. Indexes count from 0. */
export const reasoningCalls = ({ callId, tools }: SieveOptions, reasoning: string): Array<SieveEvent> => {
  const calls = new ReasoningCalls(tools)
  calls.push(reasoning)
  return calls.end().flatMap(({ arguments: args, name }, index) => {
    const id = callId(index)
    return [CallStarted(index, id, name), CallArguments(index, args), CallFinished(index, id, name, args)]
  })
}
