/**
 * The history of admin changes, beside the usage. It keeps 10,000 changes for at most `usage.keep_days`.
 *
 * What cannot be written stays in memory and is written later. A history without a place is memory alone.
 */
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { randomInt } from "node:crypto"
import { Change } from "./Change.ts"
import { logRemoved, type Retention } from "./retention.ts"
import { dayLength } from "./windows.ts"

/** A change with its position: whole numbers that rise with time. */
export interface PlacedChange {
  readonly position: number
  readonly change: Change
}

/** A change as a text, which a place keeps without reading it. */
export interface KeptChange {
  readonly position: number
  readonly text: string
}

/** The history of admin changes. Its methods never fail. */
export interface ChangeHistory {
  readonly record: (change: Change) => Effect.Effect<void>
  /** The newest changes before a position, newest first. */
  readonly read: (before: number, limit: number) => Effect.Effect<ReadonlyArray<PlacedChange>>
}

/** Where a history is kept. */
export interface ChangePlace<E> {
  /** Adds changes that it does not have, and removes those beyond `mostChanges`. */
  readonly write: (changes: ReadonlyArray<KeptChange>) => Effect.Effect<void, E>
  /** Removes the changes before a position; returns their number. */
  readonly removeBefore: (oldest: number) => Effect.Effect<number, E>
  /** The newest changes before a position and from `oldest` on, newest first. */
  readonly read: (before: number, oldest: number, limit: number) => Effect.Effect<ReadonlyArray<KeptChange>, E>
  /** Encrypts and decrypts texts; `open` returns `undefined` for a text of another key. */
  readonly seal: (text: string) => string
  readonly open: (text: string) => string | undefined
}

/** Texts as they are. */
export const plainTexts: Pick<ChangePlace<never>, "open" | "seal"> = { seal: (text) => text, open: (text) => text }

/** Bounds the changes that are kept. */
export const mostChanges = 10_000
/** Bounds the characters of changes in memory. */
const mostCharacters = 16 * 1024 * 1024
/** Changes that one call writes. */
const perWrite = 100
/** Positions of a millisecond. Nodes choose one at random, so that they do not collide. */
const perMillisecond = 1000

/** The first position at a time in Unix milliseconds. */
export const positionAt = (millis: number): number => millis * perMillisecond

const ChangeText = Schema.fromJsonString(Change)
const [encodeChange, decodeChange] = [Schema.encodeSync(ChangeText), Schema.decodeUnknownOption(ChangeText)]

/**
 * Makes the history in a place; in memory without one. `keepDays` is read at each use. Changes are removed for their age only while the
 * usage history confirms the time (`Retention`).
 */
export const makeChangeHistory = Effect.fnUntraced(function*<E, E2>(
  keepDays: () => number,
  { isConfirmed, now }: Pick<Retention<E2>, "isConfirmed" | "now">,
  place?: ChangePlace<E>
): Effect.fn.Return<ChangeHistory, never, Scope.Scope> {
  const { open, seal } = place ?? plainTexts
  const writer = yield* Semaphore.make(1)
  /** Changes that the place does not have, oldest first. */
  const held: Array<KeptChange> = []
  let characters = 0
  let last = 0
  /** Open while changes wait to be written. */
  const isBehind = yield* Latch.make()

  const oldestNow = Effect.map(now, (time) => positionAt(time - keepDays() * dayLength))

  const drop = (count: number) => {
    for (const { text } of held.splice(0, count)) characters -= text.length
  }

  /** Drops the changes in memory before a position; returns their number. */
  const dropBefore = (position: number) => {
    const fresh = held.findIndex((each) => each.position >= position)
    const count = fresh === -1 ? held.length : fresh
    drop(count)
    return count
  }

  /** Writes what is in memory. */
  const flush: Effect.Effect<void> = Effect.suspend(() => {
    if (place === undefined) return Effect.void
    return Effect.gen(function*() {
      while (held.length > 0) {
        const batch = held.slice(0, perWrite)
        yield* place.write(batch)
        dropBefore(batch.at(-1)!.position + 1)
      }
    })
  }).pipe(Effect.ignore, Effect.uninterruptible, writer.withPermit)

  const expire = Effect.gen(function*() {
    if (!(yield* isConfirmed)) return
    const oldest = yield* oldestNow
    const removed = dropBefore(oldest) + (place === undefined ? 0 : yield* place.removeBefore(oldest))
    yield* logRemoved(removed, ["admin change", "admin changes"], oldest / perMillisecond)
  }).pipe(Effect.ignore, writer.withPermit)

  if (place !== undefined) {
    yield* Effect.addFinalizer(() => flush)
    yield* isBehind.await.pipe(
      Effect.andThen(Effect.sleep("1 second")),
      Effect.andThen(flush),
      Effect.andThen(Effect.suspend(() => held.length === 0 ? isBehind.close : Effect.void)),
      Effect.forever,
      Effect.forkScoped
    )
  }
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep("1 hour"), expire)))

  return {
    record: Effect.fnUntraced(function*(change) {
      last = Math.max(last + 1, positionAt(change.at) + randomInt(perMillisecond))
      const text = seal(encodeChange(change))
      held.push({ position: last, text })
      characters += text.length
      drop(Math.max(0, held.length - mostChanges))
      while (characters > mostCharacters) drop(1)
      yield* flush
      if (held.length > 0) yield* isBehind.open
    }),
    read: Effect.fnUntraced(function*(before, limit) {
      yield* flush
      const oldest = yield* oldestNow
      const written = place === undefined ? [] : yield* Effect.orElseSucceed(
        place.read(before, oldest, limit),
        (): ReadonlyArray<KeptChange> => []
      )
      const known = new Map(written.map(({ position, text }) => [position, text]))
      for (const { position, text } of held) {
        if (position < before && position >= oldest) known.set(position, text)
      }
      return [...known].sort(([a], [b]) => b - a).slice(0, limit).flatMap(([position, text]) => {
        const opened = open(text)
        const change = opened === undefined ? undefined : decodeChange(opened)
        return change?._tag === "Some" ? [{ position, change: change.value }] : []
      })
    })
  }
})
