/**
 * From upstream events to the canonical reply, in one machine of three that runs once per network chunk: calls in order, text
 * without what is none, and the end with its figures.
 */
import type { ReplyEvent, Usage } from "../domain/ReplyEvent.ts"
import type { Meter } from "../domain/stream/cooperative.ts"
import { compose, type HoldingMachine, type Machine } from "../domain/stream/transducer.ts"
import type { UpstreamEvent } from "../domain/UpstreamEvent.ts"
import { type FilterOptions, filterText } from "./filterText.ts"
import { type FinishMachine, type FinishOptions, finishReply, type UsageSoFar } from "./finishReply.ts"
import { orderCalls } from "./orderCalls.ts"
import type { ReplyPart } from "./ReplyPart.ts"

export type { UsageSoFar }

/** What one reply needs to be assembled. */
export interface AssembleOptions extends FilterOptions, FinishOptions {
  /** Told the steps that ordering the calls takes. */
  readonly meter?: Meter | undefined
}

/** The machine of one reply, which can be asked for its tokens at any time. */
export interface ReplyMachine extends HoldingMachine<UpstreamEvent, ReplyEvent>, UsageSoFar {
  /** `Finish` was emitted; nothing more is wanted of the upstream. */
  readonly finished: () => boolean
}

class Assembly implements ReplyMachine {
  private readonly order: HoldingMachine<UpstreamEvent, ReplyPart>
  private readonly filter: HoldingMachine<ReplyPart, ReplyPart>
  private readonly finish: FinishMachine
  private readonly machine: Machine<UpstreamEvent, ReplyEvent>

  constructor(options: AssembleOptions) {
    this.order = orderCalls(options.meter)
    this.filter = filterText(options)
    this.finish = finishReply(options)
    this.machine = compose(compose(() => this.order, () => this.filter), () => this.finish)()
  }

  get held(): number {
    return this.order.held + this.filter.held + this.finish.held
  }

  finished(): boolean {
    return this.finish.finished()
  }

  usage(): Usage {
    return this.finish.usage()
  }

  estimated(): boolean {
    return this.finish.estimated()
  }

  promptTold(): boolean {
    return this.finish.promptTold()
  }

  push(event: UpstreamEvent, out: Array<ReplyEvent>): void {
    if (!this.finish.finished()) this.machine.push(event, out)
  }

  end(out: Array<ReplyEvent>): void {
    if (!this.finish.finished()) this.machine.end(out)
  }
}

/** Starts the machine for one reply. After it has emitted `Finish` whatever is pushed is dropped. */
export const assembleReply = (options: AssembleOptions): ReplyMachine => new Assembly(options)
