/**
 * From upstream events to the canonical reply, in one machine of three that runs once per network chunk: calls in order, text
 * without what is none, and the end with its figures.
 */
import type { ReplyEvent } from "../domain/ReplyEvent.ts"
import type { UpstreamEvent } from "../domain/UpstreamEvent.ts"
import type { Meter } from "../stream/steps.ts"
import { compose, type Machine } from "../stream/transducer.ts"
import { type FilterOptions, filterText } from "./filterText.ts"
import { type FinishOptions, finishReply, type UsageSoFar } from "./finishReply.ts"
import { orderCalls } from "./orderCalls.ts"

export type { UsageSoFar }

/** What one reply needs to be assembled. */
export interface AssembleOptions extends FilterOptions, FinishOptions {
  /** Told the steps that ordering the calls takes. */
  readonly meter?: Meter | undefined
}

/** The machine of one reply, which can be asked for its tokens at any time. */
export interface ReplyMachine extends Machine<UpstreamEvent, ReplyEvent>, UsageSoFar {}

/** Starts the machine for one reply. After it has emitted `Finish` whatever is pushed is dropped. */
export const assembleReply = (options: AssembleOptions): ReplyMachine => {
  const finish = finishReply(options)
  const machine = compose(compose(() => orderCalls(options.meter), () => filterText(options)), () => finish)()
  return {
    usage: finish.usage,
    estimated: finish.estimated,
    promptTold: finish.promptTold,
    push: (event, out) => {
      if (!finish.finished()) machine.push(event, out)
    },
    end: (out) => {
      if (!finish.finished()) machine.end(out)
    }
  }
}
