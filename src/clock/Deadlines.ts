/**
 * Every deadline of the hot path in one list that one fiber looks at: a request's deadlines cost no timer, no fiber and no
 * race of their own, and moving one is an assignment.
 *
 * Deadlines are kept to the next tick, so they are late by less than one: fine for limits of seconds, which these are. A
 * look at the list is linear in it, ten times a second: 20,000 open streams cost about a thousandth of a core.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import { monotonicMillis } from "../domain/monotonicMillis.ts"

/** Milliseconds between two looks at the list. */
export const tickMillis = 100

/** Ticks without any deadline after which nobody looks any more, until the next one comes. */
const idleTicks = 10

/** A moment at which something is to happen unless it is moved or cancelled before. */
export interface Deadline {
  /** Monotonic milliseconds; `Infinity` while nothing is waited for. May be assigned at any time. */
  at: number
  /** Nothing happens any more. Does no harm twice. */
  readonly cancel: () => void
}

/** An entry of the doubly linked list. */
class Entry implements Deadline {
  at: number
  readonly expired: (now: number) => void
  before: Entry | undefined = undefined
  after: Entry | undefined = undefined
  listed = true
  readonly list: List

  constructor(list: List, at: number, expired: (now: number) => void) {
    this.list = list
    this.at = at
    this.expired = expired
  }

  readonly cancel = (): void => {
    if (this.listed) this.list.remove(this)
  }
}

class List {
  first: Entry | undefined = undefined
  size = 0

  add(entry: Entry): void {
    entry.after = this.first
    if (this.first !== undefined) this.first.before = entry
    this.first = entry
    this.size++
  }

  remove(entry: Entry): void {
    entry.listed = false
    if (entry.before === undefined) this.first = entry.after
    else entry.before.after = entry.after
    if (entry.after !== undefined) entry.after.before = entry.before
    this.size--
  }

  /** Runs what is due. What that adds, moves or cancels is no harm: an entry that was removed keeps its way on. */
  look(now: number): void {
    for (let entry = this.first; entry !== undefined; entry = entry.after) {
      if (!entry.listed || entry.at > now) continue
      entry.at = Infinity
      entry.expired(now)
    }
  }
}

/** The deadlines of a process. */
export class Deadlines extends Context.Service<Deadlines, {
  /** Monotonic milliseconds, now. */
  readonly now: () => number
  /**
   * Adds a deadline. `expired` runs in the fiber that watches: it must be quick and must not throw. It runs once for each
   * time that is reached; `at` is then `Infinity` and may be set anew, there too. Whoever adds one cancels it.
   */
  readonly add: (at: number, expired: (now: number) => void) => Deadline
  /** Deadlines that are neither over nor cancelled. */
  readonly size: () => number
}>()("model-gateway/clock/Deadlines") {
  static readonly layer: Layer.Layer<Deadlines> = Layer.effect(
    Deadlines,
    Effect.gen(function*() {
      const clock = yield* Clock.Clock
      const list = new List()
      const wanted = Latch.makeUnsafe()
      let watching = false
      yield* Effect.forkScoped(Effect.gen(function*() {
        for (;;) {
          yield* wanted.await
          watching = true
          for (let idle = 0; idle < idleTicks; idle = list.size === 0 ? idle + 1 : 0) {
            yield* Effect.sleep(tickMillis)
            list.look(monotonicMillis(clock))
          }
          watching = false
          wanted.closeUnsafe()
        }
      }))
      return Deadlines.of({
        now: () => monotonicMillis(clock),
        add: (at, expired) => {
          const entry = new Entry(list, at, expired)
          list.add(entry)
          if (!watching) wanted.openUnsafe()
          return entry
        },
        size: () => list.size
      })
    })
  )
}
