/**
 * A reply that is wanted whole, kept as it comes: neighbouring pieces of text, reasoning and arguments are one event, so that
 * what is held is the reply's characters and not an object for each of them.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Pull from "effect/Pull"
import { CallArguments, ReasoningDelta, type ReplyEvent, TextDelta } from "../domain/ReplyEvent.ts"
import type { Batch } from "./CompletionInput.ts"

type Piece = Extract<ReplyEvent, { readonly _tag: "TextDelta" | "ReasoningDelta" | "CallArguments" }>

/** Joins pieces of one kind, and of one call, that follow each other. */
class Joined {
  private readonly events: Array<ReplyEvent> = []
  private last: Piece | undefined
  private readonly pieces: Array<string> = []

  push(event: ReplyEvent): void {
    switch (event._tag) {
      case "TextDelta":
      case "ReasoningDelta":
        return this.add(event, event.text)
      case "CallArguments":
        return this.add(event, event.delta)
      default:
        this.close()
        this.events.push(event)
    }
  }

  batch(): Batch {
    this.close()
    return this.events as unknown as Batch
  }

  private add(piece: Piece, text: string): void {
    const { last } = this
    const goesOn = last !== undefined && last._tag === piece._tag &&
      (piece._tag !== "CallArguments" || (last as typeof piece).index === piece.index)
    if (!goesOn) {
      this.close()
      this.last = piece
    }
    this.pieces.push(text)
  }

  private close(): void {
    const { last, pieces } = this
    if (last === undefined) return
    const text = pieces.length === 1 ? pieces[0]! : pieces.join("")
    pieces.length = 0
    this.last = undefined
    this.events.push(
      last._tag === "TextDelta"
        ? TextDelta(text)
        : last._tag === "ReasoningDelta"
        ? ReasoningDelta(text)
        : CallArguments(last.index, text)
    )
  }
}

/** Waits for all that follows the first events, and gives everything; at once where they are the last ones. */
export const collectReply = <E>(first: Batch, next: Pull.Pull<Batch, E>): Effect.Effect<Batch, E> => {
  const joined = new Joined()
  const take = (batch: Batch): Effect.Effect<Batch, E> => {
    for (const event of batch) joined.push(event)
    return batch[batch.length - 1]!._tag === "Finish" ? Effect.succeed(joined.batch()) : step
  }
  const step: Effect.Effect<Batch, E> = Pull.matchEffect(next, {
    onSuccess: take,
    onFailure: (cause: Cause.Cause<E>) => Effect.failCause(cause),
    onDone: () => Effect.succeed(joined.batch())
  })
  return take(first)
}
