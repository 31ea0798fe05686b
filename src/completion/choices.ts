/**
 * The choices of one reply. Each choice is a turn with machines of its own: it has its own calls, stop sequences and end. The tokens are the sum
 * of all choices.
 */
import type { Conversation } from "../domain/Conversation.ts"
import { estimateConversation } from "../domain/estimateConversation.ts"
import { ChoiceBegan, ChoiceOver, Finish, ReplyExtra, UsageReported } from "../domain/ReplyEvent.ts"
import type { ReplyEvent, Usage } from "../domain/ReplyEvent.ts"
import { clear } from "../domain/stream/transducer.ts"
import { type UpstreamEvent, type UpstreamExtra, UpstreamFinish } from "../domain/UpstreamEvent.ts"
import type { Turn, TurnMachine } from "./assembleReply.ts"
import { ReportedUsage } from "./finishMachine.ts"

/** Makes the turn of one choice, by the tokens of output at which it is cut and the characters that other choices hold. */
export type TurnMaker = (most: number | undefined, heldBeside: (() => number) | undefined) => Turn

/** The machine of a turn that has several choices. Bounded by the choices that were asked for. */
export class ChoiceTurns implements TurnMachine {
  readonly isBilled = false
  readonly #conversation: Conversation
  readonly #most: number | undefined
  readonly #makeTurn: TurnMaker
  /** The turns that have begun, by the index of their choice. */
  readonly #turns = new Map<number, Turn>()
  #index = 0
  /** The choice of the last event that left. */
  #shown: number | undefined
  /** Characters that all turns hold, and those of the turn that is working. */
  #held = 0
  #working = 0
  /** The choices that have ended, and the end of the last one. */
  #over = 0
  #last: Finish | undefined
  #isFinished = false
  readonly #reported = new ReportedUsage()
  #usageFields: UpstreamExtra | undefined
  readonly #made: Array<ReplyEvent> = []

  constructor(conversation: Conversation, most: number | undefined, makeTurn: TurnMaker) {
    this.#conversation = conversation
    this.#most = most === undefined ? undefined : Math.floor(most / conversation.choices)
    this.#makeTurn = makeTurn
  }

  get isDone(): boolean {
    return this.#isFinished
  }

  usage(): Usage {
    let reasoning = 0
    let written = 0
    for (const turn of this.#turns.values()) {
      const { completionTokens, reasoningTokens } = turn.usage()
      reasoning += reasoningTokens
      written += completionTokens - reasoningTokens
    }
    return this.#reported.usage(reasoning, written, () => estimateConversation(this.#conversation))
  }

  estimated(): boolean {
    return this.#reported.estimated()
  }

  promptReported(): boolean {
    return this.#reported.promptReported()
  }

  cacheReported(): boolean {
    return this.#reported.cacheReported()
  }

  push(event: UpstreamEvent, out: Array<ReplyEvent>): void {
    if (event._tag === "UpstreamChoice") this.#index = event.index
    else if (event._tag === "UpstreamUsage") this.#reported.add(event.usage)
    else if (event._tag === "UpstreamExtra" && event.at === "usage") this.#usageFields = event
    else this.#step(this.#index, out, (turn) => turn.push(event, this.#made))
  }

  end(out: Array<ReplyEvent>): void {
    for (const index of this.#turns.keys()) {
      this.#step(index, out, (turn) => {
        // A limit of the whole reply cuts every choice.
        if (!turn.isDone) turn.push(UpstreamFinish("length"), this.#made)
        turn.end(this.#made)
      })
    }
    // A server may make fewer choices than it was asked for. A choice that violates the choice of tools has no end.
    if (this.#last !== undefined && this.#over === this.#turns.size) this.#finish(this.#last, out)
  }

  #step(index: number, out: Array<ReplyEvent>, step: (turn: Turn) => void): void {
    let turn = this.#turns.get(index)
    if (turn === undefined) {
      turn = this.#makeTurn(this.#most, () => this.#held - this.#working)
      this.#turns.set(index, turn)
    }
    this.#working = turn.held
    step(turn)
    this.#held += turn.held - this.#working
    for (const event of this.#made) this.#show(event, index, out)
    clear(this.#made)
  }

  #show(event: ReplyEvent, index: number, out: Array<ReplyEvent>): void {
    if (event._tag === "UsageReported") return
    if (this.#shown !== index) out.push(ChoiceBegan(index))
    this.#shown = index
    if (event._tag !== "Finish") {
      out.push(event)
      return
    }
    this.#over++
    this.#last = event
    const isLast = this.#over === this.#conversation.choices
    if (isLast) this.#report(out)
    out.push(ChoiceOver(event.reason, event.stopSequence))
    if (isLast) this.#finish(event, out)
  }

  #report(out: Array<ReplyEvent>): void {
    if (this.#usageFields !== undefined) {
      const { at, family, value } = this.#usageFields
      out.push(ReplyExtra(family, at, value))
    }
    out.push(UsageReported(this.usage()))
  }

  #finish({ reason, stopSequence }: Finish, out: Array<ReplyEvent>): void {
    if (this.#isFinished) return
    this.#isFinished = true
    if (this.#over < this.#conversation.choices) this.#report(out)
    out.push(Finish(reason, stopSequence))
  }
}
