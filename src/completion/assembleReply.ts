/**
 * Assembles the canonical reply from upstream events, by a machine of three stages that runs once per network chunk: serialize
 * the calls, filter the text, finish with usage.
 */
import type { ReplyEvent, Usage } from "../domain/ReplyEvent.ts"
import type { Meter } from "../domain/stream/cooperative.ts"
import { compose, type HoldingMachine, type Machine } from "../domain/stream/transducer.ts"
import type { UpstreamEvent } from "../domain/UpstreamEvent.ts"
import { type FilterOptions, filterText } from "./filterText.ts"
import { type FinishMachine, finishMachine, type FinishOptions, type UsageSoFar } from "./finishMachine.ts"
import type { ReplyPart } from "./ReplyPart.ts"
import { serializeToolCalls } from "./serializeToolCalls.ts"

/** Options of one reply. */
export interface AssembleOptions extends FilterOptions, FinishOptions {
  /** Counts the steps of serializing the calls. */
  readonly meter?: Meter | undefined
}

/** The machine of one reply, with its tokens so far. */
export interface ReplyMachine extends HoldingMachine<UpstreamEvent, ReplyEvent>, UsageSoFar {
  /** True after `Finish`, when the upstream is no longer needed. */
  readonly finished: () => boolean
}

class Assembly implements ReplyMachine {
  private readonly order: HoldingMachine<UpstreamEvent, ReplyPart>
  private readonly filter: HoldingMachine<ReplyPart, ReplyPart>
  private readonly finish: FinishMachine
  private readonly machine: Machine<UpstreamEvent, ReplyEvent>

  constructor(options: AssembleOptions) {
    this.order = serializeToolCalls(options.meter)
    this.filter = filterText(options)
    this.finish = finishMachine(options)
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

  promptReported(): boolean {
    return this.finish.promptReported()
  }

  push(event: UpstreamEvent, out: Array<ReplyEvent>): void {
    if (!this.finish.finished()) this.machine.push(event, out)
  }

  end(out: Array<ReplyEvent>): void {
    if (!this.finish.finished()) this.machine.end(out)
  }
}

/** Starts the machine for one reply. It ignores everything after it has emitted `Finish`. */
export const assembleReply = (options: AssembleOptions): ReplyMachine => new Assembly(options)
