/** The first events of a reply: whether they are a reply at all, while another attempt is still possible. */
import * as Effect from "effect/Effect"
import { isShown } from "../domain/ReplyEvent.ts"
import { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import type { Batch } from "./CompletionInput.ts"

/** The failure of a reply without any event. */
export const emptyReply = Effect.fail(new UpstreamFailure({ phase: "stream", kind: "empty" }))

/** Fails a reply that is `empty` and must not be, or was withdrawn before any content. */
export const checkFirst = (batch: Batch, isEmpty: boolean): Effect.Effect<Batch, UpstreamFailure> => {
  const last = batch[batch.length - 1]!
  if (last._tag !== "Finish" || batch.some(isShown)) return Effect.succeed(batch)
  if (last.reason === "content_filter") {
    return Effect.fail(new UpstreamFailure({ phase: "stream", kind: "withdrawn" }))
  }
  // A stop sequence at the very start, and an output limit within hidden reasoning, make a complete reply without text.
  return isEmpty && last.reason === "stop" ? emptyReply : Effect.succeed(batch)
}
