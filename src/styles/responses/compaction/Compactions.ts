/**
 * Makes and opens the compactions of the gateway.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { CompletedReply, CompletionOutput } from "../../../completion/Completion.ts"
import { LastingEncryption } from "../../../config/LastingEncryption.ts"
import { GatewayError } from "../../../domain/GatewayError.ts"
import { Finish } from "../../../domain/ReplyEvent.ts"
import { summaryIn } from "./prompt.ts"
import { openSeal, sealOf, unsealed } from "./seal.ts"

/** Makes the functions. Build them once, not per request. */
export const makeCompactions = Effect.gen(function*() {
  const { open, seal } = yield* LastingEncryption
  const clock = yield* Clock.Clock
  return {
    /** The summary in a seal; `undefined` if this gateway cannot read it. */
    readSummary: (seal: string): string | undefined => openSeal(open, seal)?.summary,

    /** The seal of the summary that a model wrote. */
    sealed: (reply: CompletedReply, model: string): Effect.Effect<string, GatewayError> =>
      Effect.suspend(() => {
        const summary = summaryIn(reply)
        if (summary instanceof GatewayError) return Effect.fail(summary)
        const { name, text } = unsealed({ at: Math.floor(clock.currentTimeMillisUnsafe() / 1000), model, summary })
        return Effect.map(seal(name, text), sealOf)
      })
  }
})

/** A reply whose text is in a compaction: its usage alone. */
export const withoutText = (reply: CompletedReply): CompletedReply => {
  const usage = reply.events.find(({ _tag }) => _tag === "UsageReported")
  return { ...reply, events: usage === undefined ? [Finish("stop")] : [usage, Finish("stop")] }
}

/** A whole reply as a stream. */
export const asStream = (reply: CompletedReply): CompletionOutput => ({
  ...reply,
  events: Stream.fromIterable(reply.events)
})
