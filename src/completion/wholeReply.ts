/**
 * Replies in one piece: the fold of a reply's events.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { GatewayError } from "../domain/GatewayError.ts"
import type { Reply } from "../domain/Reply.ts"
import { foldReply } from "../domain/Reply.ts"
import type { ReplyEvent } from "../domain/ReplyEvent.ts"
import type { CompletionOutput } from "./CompletionInput.ts"

/** All events of a reply. */
export const wholeEvents = (output: CompletionOutput): Effect.Effect<Iterable<ReplyEvent>, GatewayError> =>
  output.whole === undefined ? Stream.runCollect(output.events) : Effect.succeed(output.whole)

/**
 * Collects a whole reply. A reply that was withdrawn before it showed anything fails with `content_filter` when it is
 * opened; one that was withdrawn later ends as that, with what it had.
 */
export const wholeReply = (output: CompletionOutput): Effect.Effect<Reply, GatewayError> =>
  Effect.map(wholeEvents(output), (events) => {
    const fold = foldReply()
    for (const event of events) fold.push(event)
    return fold.reply()
  })
