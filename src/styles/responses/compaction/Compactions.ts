/**
 * Makes and opens the compactions of the gateway.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { CompletedReply, CompletionOutput } from "../../../completion/Completion.ts"
import type { ReplyBefore } from "../../../completion/CompletionInput.ts"
import { startCooperatively } from "../../../config/clock/cooperative.ts"
import { LastingEncryption } from "../../../config/LastingEncryption.ts"
import type { Conversation } from "../../../domain/Conversation.ts"
import { estimateCooperatively } from "../../../domain/estimateConversation.ts"
import { GatewayError } from "../../../domain/GatewayError.ts"
import { Finish } from "../../../domain/ReplyEvent.ts"
import type { Item } from "../items.ts"
import type { AskedCompaction } from "./asked.ts"
import { compactionItem } from "./compactedItems.ts"
import { summaryIn, summaryRequest } from "./prompt.ts"
import { openSeal, sealOf, unsealed } from "./seal.ts"

/** A compaction that a request asks for. */
interface AskedFor {
  /** Its seal, once it is made. */
  readonly seal: () => string | undefined
  /** Where it comes before the reply: the summary that is made first, and the conversation that follows from it. */
  readonly before: ReplyBefore | undefined
  /** Where it is the reply: what the model is asked, and the reply that its summary becomes. */
  readonly alone:
    | Pick<ReplyBefore, "conversation" | "shorter"> & {
      readonly reply: (summary: CompletedReply) => Effect.Effect<CompletedReply, GatewayError>
    }
    | undefined
}

/** A reply whose text is in a compaction: its usage alone. */
const withoutText = (reply: CompletedReply): CompletedReply => {
  const usage = reply.events.find(({ _tag }) => _tag === "UsageReported")
  return { ...reply, events: usage === undefined ? [Finish("stop")] : [usage, Finish("stop")] }
}

/** Makes the functions. Build them once, not per request. */
export const makeCompactions = Effect.gen(function*() {
  const { open, seal } = yield* LastingEncryption
  const clock = yield* Clock.Clock

  /** The seal of the summary that a model wrote. */
  const sealed = (reply: CompletedReply, model: string): Effect.Effect<string, GatewayError> =>
    Effect.suspend(() => {
      const summary = summaryIn(reply)
      if (summary instanceof GatewayError) return Effect.fail(summary)
      const { name, text } = unsealed({ at: Math.floor(clock.currentTimeMillisUnsafe() / 1000), model, summary })
      return Effect.map(seal(name, text), sealOf)
    })

  return {
    /** The summary in a seal; `undefined` if this gateway cannot read it. */
    readSummary: (seal: string): string | undefined => openSeal(open, seal)?.summary,

    sealed,

    /** The compaction that a request asks for. `goesOn` makes the conversation that has a compaction as its last item. */
    askedFor: Effect.fnUntraced(function*(
      asked: Exclude<AskedCompaction, undefined>,
      conversation: Conversation,
      model: string,
      goesOn: (last: Item) => Effect.Effect<Conversation, GatewayError>
    ) {
      let made: string | undefined
      const make = (reply: CompletedReply) =>
        Effect.tap(sealed(reply, model), (seal) =>
          Effect.sync(() => {
            made = seal
          }))
      const isNow = asked === "now"
      const isDue = !isNow && (yield* startCooperatively(estimateCooperatively(conversation))) >= asked
      const asking = summaryRequest(conversation)
      const compaction: AskedFor = {
        seal: () => made,
        before: isDue
          ? { ...asking, next: (reply) => Effect.flatMap(make(reply), (seal) => goesOn(compactionItem(seal))) }
          : undefined,
        alone: isNow ? { ...asking, reply: (summary) => Effect.as(make(summary), withoutText(summary)) } : undefined
      }
      return compaction
    })
  }
})

/** A whole reply as a stream. */
export const asStream = (reply: CompletedReply): CompletionOutput => ({
  ...reply,
  events: Stream.fromIterable(reply.events)
})
