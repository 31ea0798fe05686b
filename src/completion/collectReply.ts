/** Collects a whole reply of its events. */
import * as Arr from "effect/Array"
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Pull from "effect/Pull"
import {
  CallArguments,
  type ChoiceBegan,
  ReasoningDelta,
  type ReplyEvent,
  type ReplyExtra,
  TextDelta
} from "../domain/ReplyEvent.ts"
import { isBoundPlace } from "../domain/replyExtras.ts"
import type { ChunkPull } from "../domain/stream/transduce.ts"
import type { Batch } from "./CompletionInput.ts"

type Piece = Extract<ReplyEvent, { readonly _tag: "TextDelta" | "ReasoningDelta" | "CallArguments" }>

/** Fields that are content of their own. Other fields belong to the text that they come with. */
const ownContent = ["images", "refusal"]

const divides = ({ at, value }: ReplyExtra): boolean =>
  at === "reasoning" || isBoundPlace(at) ||
  (at === "message" && ownContent.some((name) => value[name] !== undefined))

/** Joins consecutive pieces of the same kind, and of the same call, into one event. */
class Joined {
  readonly #events: Array<ReplyEvent> = []
  #last: Piece | undefined
  readonly #pieces: Array<string> = []

  push(event: ReplyEvent): void {
    switch (event._tag) {
      case "TextDelta":
      case "ReasoningDelta":
        return this.#add(event, event.text)
      case "CallArguments":
        return this.#add(event, event.delta)
      case "ReplyExtra":
        if (divides(event)) this.#close()
        // Of other events of the server, the item or the response says what they say.
        if (event.at !== "event") this.#events.push(event)
        return
      default:
        this.#close()
        this.#events.push(event)
    }
  }

  /** All events so far. */
  all(): ReadonlyArray<ReplyEvent> {
    this.#close()
    return this.#events
  }

  #add(piece: Piece, text: string): void {
    const last = this.#last
    const goesOn = last !== undefined && last._tag === piece._tag &&
      (piece._tag !== "CallArguments" || (last as typeof piece).index === piece.index)
    if (!goesOn) {
      this.#close()
      this.#last = piece
    }
    this.#pieces.push(text)
  }

  #close(): void {
    const last = this.#last
    const pieces = this.#pieces
    if (last === undefined) return
    const text = pieces.length === 1 ? pieces[0]! : pieces.join("")
    pieces.length = 0
    this.#last = undefined
    this.#events.push(
      last._tag === "TextDelta"
        ? TextDelta(text)
        : last._tag === "ReasoningDelta"
        ? ReasoningDelta(text)
        : CallArguments(last.index, text)
    )
  }
}

/** The same for each choice of a reply apart: their pieces come in turns. */
class JoinedChoices {
  #current = new Joined()
  /** All choices by their index, of a reply of several. */
  #all: Map<number, Joined> | undefined

  push(event: ReplyEvent): void {
    if (event._tag === "ChoiceBegan") this.#turnTo(event)
    else this.#current.push(event)
  }

  all(): ReadonlyArray<ReplyEvent> {
    if (this.#all === undefined) return this.#current.all()
    const isEnd = ({ _tag }: ReplyEvent) => _tag === "UsageReported" || _tag === "Finish"
    const events = [...this.#all.values()].flatMap((joined) => joined.all())
    return [...events.filter((event) => !isEnd(event)), ...events.filter(isEnd)]
  }

  #turnTo(event: ChoiceBegan): void {
    this.#all ??= new Map()
    const known = this.#all.get(event.index)
    // The first choice may have begun with fields of the whole reply.
    this.#current = known ?? (this.#all.size === 0 ? this.#current : new Joined())
    if (known === undefined) this.#current.push(event)
    this.#all.set(event.index, this.#current)
  }
}

/**
 * Collects the first events and all that follow. Consecutive pieces of text, reasoning and arguments become one event, so that
 * memory holds the reply's characters and not an object for each piece. `RequestBudget` bounds the reply.
 */
export const collectReply = <E>(first: Batch, rest: ChunkPull<ReplyEvent, E>): Effect.Effect<Batch, E> => {
  const joined = new JoinedChoices()
  const whole = (): Effect.Effect<Batch> => {
    const events = joined.all()
    return Arr.isReadonlyArrayNonEmpty(events) ? Effect.succeed(events) : Effect.die("A reply has no events")
  }
  const take = (batch: Batch): Effect.Effect<Batch, E> => {
    for (const event of batch) joined.push(event)
    return batch[batch.length - 1]!._tag === "Finish" ? whole() : step
  }
  const step: Effect.Effect<Batch, E> = Pull.matchEffect(rest, {
    onSuccess: take,
    onFailure: (cause: Cause.Cause<E>) => Effect.failCause(cause),
    onDone: whole
  })
  return take(first)
}
