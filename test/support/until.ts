/**
 * Polling for conditions without an event to wait for: in another process, a store, a server's page. The result does not depend on the
 * duration. A condition that does not come true fails the test after 20 seconds, with what it waits for and the last value.
 */
import * as Effect from "effect/Effect"
import { inspect } from "node:util"

/** Milliseconds between two polls, so that the polled process gets CPU time. */
const pause = 5
const breath = () => new Promise((resolve) => setTimeout(resolve, pause))

/** Polls of 20 seconds at least. They are counted, because a test may move its clock. */
const mostPolls = 20_000 / pause

/** The failure of a wait. `last` is the last value, if it is known. */
const waitedFor = (what: string, ...last: ReadonlyArray<unknown>): Error =>
  new Error(
    `Still waiting after 20 seconds: ${what}${
      last.length === 0 ? "" : `; the last value is ${inspect(last[0], { depth: 6 })}`
    }`
  )

/** The text of a condition, in one line. */
const textOf = (condition: unknown): string => String(condition).replaceAll(/\s+/g, " ")

/** Polls `value` until it satisfies `predicate`, and returns it. `what` says in a failure what is waited for. */
export const untilValue = async <A>(
  what: string,
  value: () => A | Promise<A>,
  predicate: (value: A) => boolean
): Promise<A> => {
  for (let polls = 1;; polls++) {
    const now = await value()
    if (predicate(now)) return now
    if (polls >= mostPolls) throw waitedFor(what, now)
    await breath()
  }
}

/** Polls until the condition holds. A failure shows its text. */
export const untilHolds = async (holds: () => boolean | Promise<boolean>): Promise<void> => {
  for (let polls = 1; !await holds(); polls++) {
    if (polls >= mostPolls) throw waitedFor(textOf(holds))
    await breath()
  }
}

/** The same for a condition that is an effect; its place is in the stack of the failure. */
export const untilTrue = <E, R>(holds: Effect.Effect<boolean, E, R>, what = "the effect is true") => {
  const failure = waitedFor(what)
  const poll = (polls: number): Effect.Effect<void, E, R> =>
    Effect.flatMap(holds, (held) =>
      held
        ? Effect.void
        : polls >= mostPolls
        ? Effect.die(failure)
        : Effect.andThen(Effect.promise(breath), poll(polls + 1)))
  return Effect.suspend(() => poll(1))
}

/** The same for a synchronous condition. */
export const until = (holds: () => boolean): Effect.Effect<void> => Effect.promise(() => untilHolds(holds))
