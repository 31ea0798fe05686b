/**
 * Request deadlines: one list that one fiber checks, so that a request needs no timer, fiber or race of its own, and
 * moving a deadline is an assignment.
 *
 * A deadline fires up to one tick late, which suits limits of seconds. A check is linear in the list and runs at most ten
 * times a second: 20,000 open streams cost about a thousandth of a core. The fiber sleeps until the earliest deadline, for
 * at most a second, and wakes early only for an earlier one.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import { monotonicMillis } from "../../domain/time.ts"

/** Maximum delay of a deadline and minimum pause between two checks, in milliseconds. */
export const tickMillis = 100

/** Maximum sleep while there are deadlines; a later deadline does not wake the fiber. */
const longestSleep = 1000

/** Checks of an empty list before the fiber sleeps indefinitely, because requests come in series. */
const idleLooks = 60

/** A callback at a time, unless moved or cancelled. */
export interface Deadline {
  /** Monotonic milliseconds; `Infinity` disables it. May be assigned at any time. */
  at: number
  /** Removes the deadline. Idempotent. */
  readonly cancel: () => void
}

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
  /** The entry after the current one, during a check. */
  private next: Entry | undefined = undefined
  /** Time of the next check, unless `early` requests an earlier one. */
  private nextLook = Infinity
  private readonly early: () => void
  /** Consecutive checks of an empty list. */
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
    // A kept reference to a removed entry must not retain its former neighbours.
    entry.before = undefined
    entry.after = undefined
    this.size--
  }

  expect(at: number): void {
    if (at >= this.nextLook - tickMillis / 2) return
    this.nextLook = at
    this.early()
  }

  /** Fires due deadlines and returns the time of the next check. Callbacks may add, move and cancel deadlines. */
  look(now: number): number {
    // Deadlines set during the check are found by it or call `early`.
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

/** The deadlines of a gateway. */
export class Deadlines extends Context.Service<Deadlines, {
  /** Monotonic milliseconds, now. */
  readonly now: () => number
  /**
   * Adds a deadline. `expired` runs in the checking fiber, never during `add` or an assignment. It must be fast and must
   * not throw. It runs once each time the deadline is reached; `at` is then `Infinity` and may be set again, also by
   * `expired`. The caller cancels the deadline.
   */
  readonly add: (at: number, expired: (now: number) => void) => Deadline
  /** Number of deadlines that were not cancelled. */
  readonly size: () => number
}>()("model-gateway/clock/Deadlines") {
  static readonly layer: Layer.Layer<Deadlines> = Layer.effect(
    Deadlines,
    Effect.gen(function*() {
      const clock = yield* Clock.Clock
      const early = Latch.makeUnsafe()
      // Opening a latch runs its waiters synchronously, which must not happen inside `add` or an assignment.
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

/**
 * Runs an effect in its own fiber and interrupts it after `millis`. Its finalizers finish before `late` is called. At the
 * deadline, `extended` may return milliseconds to add; 0 by default.
 */
export const withDeadline = <A, E, R, E2>(
  effect: Effect.Effect<A, E, R>,
  deadlines: Deadlines["Service"],
  millis: number,
  late: () => E2,
  extended: () => number = () => 0
): Effect.Effect<A, E | E2, R> =>
  Effect.flatMap(Effect.forkChild(effect, { startImmediately: true }), (fiber) => {
    const done = fiber.pollUnsafe()
    if (done !== undefined) return done
    return Effect.callback<A, E | E2>((resume) => {
      let isLate = false
      const deadline = deadlines.add(deadlines.now() + millis, (now) => {
        const more = extended()
        if (more > 0) {
          deadline.at = now + more
          return
        }
        isLate = true
        fiber.interruptUnsafe()
      })
      fiber.addObserver((exit) => {
        deadline.cancel()
        resume(isLate && exit._tag === "Failure" ? Effect.fail(late()) : exit)
      })
      return Effect.suspend(() => {
        deadline.cancel()
        return Fiber.interrupt(fiber)
      })
    })
  })
