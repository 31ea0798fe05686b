/**
 * Every deadline of the hot path in one list that one fiber looks at: a request's deadlines cost no timer, no fiber and no
 * race of their own, and moving one is an assignment.
 *
 * Deadlines are kept to a tick, so they are late by less than one: fine for limits of seconds, which these are. A look at the
 * list is linear in it, ten times a second at most: 20,000 open streams cost about a thousandth of a core. The fiber sleeps
 * until the first deadline that it saw, a second at most, and is woken only where an earlier one comes up.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import { monotonicMillis } from "../../domain/time.ts"

/** Milliseconds by which a deadline may be late, and between two looks at the list at least. */
export const tickMillis = 100

/** The longest that the fiber sleeps while there are deadlines; what is set for later than that does not wake it. */
const longestSleep = 1000

/** Looks at an empty list before the fiber sleeps until there is a deadline: requests come one after another. */
const idleLooks = 60

/** A moment at which something is to happen unless it is moved or cancelled before. */
export interface Deadline {
  /** Monotonic milliseconds; `Infinity` while nothing is waited for. May be assigned at any time. */
  at: number
  /** Nothing happens any more. Does no harm twice. */
  readonly cancel: () => void
}

/** An entry of the doubly linked list. */
class Entry implements Deadline {
  readonly expired: (now: number) => void
  before: Entry | undefined = undefined
  after: Entry | undefined = undefined
  listed = true
  private readonly list: List
  private moment: number

  constructor(list: List, at: number, expired: (now: number) => void) {
    this.list = list
    this.moment = at
    this.expired = expired
  }

  get at(): number {
    return this.moment
  }

  set at(at: number) {
    this.moment = at
    if (this.listed) this.list.expect(at)
  }

  cancel(): void {
    if (this.listed) this.list.remove(this)
  }
}

class List {
  first: Entry | undefined = undefined
  size = 0
  /** The entry after the one that is being looked at. */
  private next: Entry | undefined = undefined
  /** When the next look is, unless `early` is told of an earlier deadline. */
  private nextLook = Infinity
  private readonly early: () => void
  /** Looks in a row at which there was no deadline. */
  private idle = idleLooks

  constructor(early: () => void) {
    this.early = early
  }

  add(entry: Entry): void {
    entry.after = this.first
    if (this.first !== undefined) this.first.before = entry
    this.first = entry
    this.size++
    this.expect(entry.at)
  }

  remove(entry: Entry): void {
    entry.listed = false
    if (this.next === entry) this.next = entry.after
    if (entry.before === undefined) this.first = entry.after
    else entry.before.after = entry.after
    if (entry.after !== undefined) entry.after.before = entry.before
    // Whoever keeps a deadline that is over must not keep those that stood beside it, and those beside them.
    entry.before = undefined
    entry.after = undefined
    this.size--
  }

  expect(at: number): void {
    if (at >= this.nextLook - tickMillis / 2) return
    this.nextLook = at
    this.early()
  }

  /**
   * Runs what is due and gives the time of the next look. What that adds, moves or cancels is no harm: the entry that is
   * next is known to the list.
   */
  look(now: number): number {
    // Whoever sets a deadline while this runs is seen by it, or tells of it.
    this.nextLook = Infinity
    for (let entry = this.first; entry !== undefined; entry = this.next) {
      this.next = entry.after
      if (entry.at > now) continue
      entry.at = Infinity
      entry.expired(now)
    }
    this.idle = this.size === 0 ? this.idle + 1 : 0
    let next = this.idle > idleLooks ? Infinity : now + longestSleep
    for (let entry = this.first; entry !== undefined; entry = entry.after) next = Math.min(next, entry.at)
    this.nextLook = next
    return next
  }
}

/** The deadlines of a gateway, which provides them once. */
export class Deadlines extends Context.Service<Deadlines, {
  /** Monotonic milliseconds, now. */
  readonly now: () => number
  /**
   * Adds a deadline. `expired` runs in the fiber that watches, never while it is added or moved: it must be quick and must
   * not throw. It runs once for each time that is reached; `at` is then `Infinity` and may be set anew, there too. Whoever adds one cancels it.
   */
  readonly add: (at: number, expired: (now: number) => void) => Deadline
  /** Deadlines that are neither over nor cancelled. */
  readonly size: () => number
}>()("model-gateway/clock/Deadlines") {
  static readonly layer: Layer.Layer<Deadlines> = Layer.effect(
    Deadlines,
    Effect.gen(function*() {
      const clock = yield* Clock.Clock
      const early = Latch.makeUnsafe()
      // Opening a latch runs who waits for it at once: never in the midst of whoever sets a deadline.
      const list = new List(() => queueMicrotask(() => early.openUnsafe()))
      yield* Effect.forkScoped(Effect.gen(function*() {
        for (;;) {
          early.closeUnsafe()
          const now = monotonicMillis(clock)
          const next = list.look(now)
          if (next === Infinity) yield* early.await
          else yield* Effect.raceFirst(Effect.sleep(Math.max(tickMillis, Math.ceil(next - now))), early.await)
        }
      }))
      return Deadlines.of({
        now: () => monotonicMillis(clock),
        add: (at, expired) => {
          const entry = new Entry(list, at, expired)
          list.add(entry)
          return entry
        },
        size: () => list.size
      })
    })
  )
}
