/**
 * Assembles the canonical reply from upstream events, by a machine of three stages that runs once per network chunk: serialize
 * the calls, filter the text, finish with usage.
 */
import type { Contract } from "../contracts/Contract.ts"
import { contractOfStyle } from "../contracts/contractOf.ts"
import { contracts } from "../contracts/contracts.ts"
import type { ReplyEvent, Usage } from "../domain/ReplyEvent.ts"
import { isOrderedPlace } from "../domain/replyExtras.ts"
import type { Meter } from "../domain/stream/cooperative.ts"
import { clear, compose, type HoldingMachine, type Machine } from "../domain/stream/transducer.ts"
import { type UpstreamEvent, UpstreamFinish } from "../domain/UpstreamEvent.ts"
import type { RequestBudget } from "../upstream/budget.ts"
import { type FilterOptions, filterText } from "./filterText.ts"
import { type FinishMachine, finishMachine, type FinishOptions, type UsageSoFar } from "./finishMachine.ts"
import type { ReplyPart } from "./ReplyPart.ts"
import type { TokensSoFar } from "./RequestStats.ts"
import { serializeToolCalls } from "./serializeToolCalls.ts"
import type { PolicyMachine } from "./toolPolicy.ts"

/** Options of one reply. */
export interface AssembleOptions extends FilterOptions, FinishOptions {
  /** Counts the steps of serializing the calls. */
  readonly meter: Meter | undefined
}

/** The machine of one reply, with its tokens so far. */
export interface ReplyMachine extends HoldingMachine<UpstreamEvent, ReplyEvent>, UsageSoFar {
  /** True after `Finish`, when the upstream is no longer needed. */
  readonly finished: () => boolean
}

class Assembly implements ReplyMachine {
  readonly #order: HoldingMachine<UpstreamEvent, ReplyPart>
  readonly #filter: HoldingMachine<ReplyPart, ReplyPart>
  readonly #finish: FinishMachine
  readonly #machine: Machine<UpstreamEvent, ReplyEvent>

  constructor(options: AssembleOptions) {
    this.#order = serializeToolCalls(options.meter)
    this.#filter = filterText(options)
    this.#finish = finishMachine(options)
    this.#machine = compose(compose(() => this.#order, () => this.#filter), () => this.#finish)()
  }

  get held(): number {
    return this.#order.held + this.#filter.held + this.#finish.held
  }

  finished(): boolean {
    return this.#finish.finished()
  }

  usage(): Usage {
    return this.#finish.usage()
  }

  estimated(): boolean {
    return this.#finish.estimated()
  }

  promptReported(): boolean {
    return this.#finish.promptReported()
  }

  exceeds(most: number): boolean {
    return this.#finish.exceeds(most)
  }

  cacheReported(): boolean {
    return this.#finish.cacheReported()
  }

  push(event: UpstreamEvent, out: Array<ReplyEvent>): void {
    if (!this.#finish.finished()) this.#machine.push(event, out)
  }

  end(out: Array<ReplyEvent>): void {
    if (!this.#finish.finished()) this.#machine.end(out)
  }
}

/** Starts the machine for one reply. It ignores everything after it has emitted `Finish`. */
export const assembleReply = (options: AssembleOptions): ReplyMachine => new Assembly(options)

/** Whether an event has content of the reply, shown or not. */
const isContent = (event: UpstreamEvent): boolean => {
  switch (event._tag) {
    case "UpstreamText":
    case "UpstreamReasoning":
      return event.text !== ""
    case "UpstreamCall":
      return true
    case "UpstreamExtra":
      // Pictures, sound, a refusal, sealed thinking, an item.
      return event.at !== "event" && isOrderedPlace(event.at)
    case "UpstreamUsage":
    case "UpstreamChoice":
    case "UpstreamFinish":
      return false
  }
}

/** The machine of one turn with the upstream, with its tokens so far. */
export interface TurnMachine
  extends Machine<UpstreamEvent, ReplyEvent>, Omit<UsageSoFar, "exceeds">, Pick<TokensSoFar, "isBilled">
{
  /** True after `Finish`, when the upstream is no longer needed. */
  readonly isDone: boolean
}

/** What a turn knows of its request. */
export interface TurnOptions {
  /** The style that the reply is for; `undefined` in an app without one. */
  readonly style: string | undefined
  /** The tokens of output beyond which the turn is cut; `undefined` for no bound but the server's. */
  readonly most: number | undefined
  /** The client's names of tools, by those that the server knows; `undefined` if they are the same. */
  readonly names: ReadonlyMap<string, string> | undefined
  /** Characters that the turns of other choices hold; `undefined` without other ones. */
  readonly heldBeside: (() => number) | undefined
  /** Called with the server's word for the end of the reply, if no contract knows it. */
  readonly onUnknownEnd: ((word: string) => void) | undefined
}

/** An event with the client's name of its tool. */
const withName = (event: ReplyEvent, names: ReadonlyMap<string, string>): ReplyEvent => {
  const name = "name" in event ? names.get(event.name) : undefined
  return "name" in event && name !== undefined ? { ...event, name } : event
}

/** The machine of one turn: assembles the reply, enforces `tool_choice`, and cuts a reply that holds or has too much. */
export class Turn implements TurnMachine {
  readonly isBilled = false
  readonly #assembly: ReplyMachine
  readonly #policy: PolicyMachine | undefined
  readonly #budget: RequestBudget
  readonly #assembled: Array<ReplyEvent> = []
  readonly #contract: Contract | undefined
  readonly #most: number | undefined
  readonly #names: ReadonlyMap<string, string> | undefined
  readonly #heldBeside: TurnOptions["heldBeside"]
  readonly #onUnknownEnd: TurnOptions["onUnknownEnd"]

  constructor(
    assembly: ReplyMachine,
    policy: PolicyMachine | undefined,
    budget: RequestBudget,
    options: TurnOptions
  ) {
    this.#assembly = assembly
    this.#policy = policy
    this.#budget = budget
    this.#contract = contractOfStyle(options.style)
    this.#most = options.most
    this.#names = options.names
    this.#heldBeside = options.heldBeside
    this.#onUnknownEnd = options.onUnknownEnd
  }

  /** Characters that the turn holds. */
  get held(): number {
    return this.#assembly.held + (this.#policy?.held ?? 0)
  }

  usage(): Usage {
    return this.#assembly.usage()
  }

  estimated(): boolean {
    return this.#assembly.estimated()
  }

  promptReported(): boolean {
    return this.#assembly.promptReported()
  }

  cacheReported(): boolean {
    return this.#assembly.cacheReported()
  }

  /** True after `Finish`, when the upstream is no longer needed. */
  get isDone(): boolean {
    return this.#assembly.finished()
  }

  /** Events leave as they are assembled. */
  get #isDirect(): boolean {
    return this.#policy === undefined && this.#names === undefined
  }

  push(event: UpstreamEvent, out: Array<ReplyEvent>): void {
    const translated = event._tag === "UpstreamExtra" && event.family !== this.#contract?.id
      ? contracts[event.family].facts.elsewhere(event)
      : undefined
    if (translated !== undefined) return translated.forEach((each) => this.push(each, out))
    const assembly = this.#assembly
    const budget = this.#budget
    const most = this.#most
    if (event._tag === "UpstreamFinish" && event.unknown !== undefined) this.#onUnknownEnd?.(event.unknown)
    const hasContent = isContent(event)
    if (budget.isEmpty && hasContent) budget.isEmpty = false
    const to = this.#isDirect ? out : this.#assembled
    assembly.push(event, to)
    const isTooLong = hasContent && most !== undefined && assembly.exceeds(most)
    if (!budget.hold(this.held + (this.#heldBeside?.() ?? 0)) || isTooLong) assembly.push(UpstreamFinish("length"), to)
    this.#applyPolicy(out)
  }

  end(out: Array<ReplyEvent>): void {
    this.#assembly.end(this.#isDirect ? out : this.#assembled)
    this.#applyPolicy(out)
  }

  #applyPolicy(out: Array<ReplyEvent>): void {
    for (const assembled of this.#assembled) {
      const event = this.#names === undefined ? assembled : withName(assembled, this.#names)
      if (this.#policy === undefined) out.push(event)
      else this.#policy.push(event, out)
    }
    clear(this.#assembled)
  }
}

export const isTurnDone = (turn: TurnMachine): boolean => turn.isDone
