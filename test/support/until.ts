/**
 * Polling for conditions without an event to wait for: in another process, a store, a server's page. The result does not depend on the
 * duration. A condition that does not come true fails the test after 15 seconds, with what it waits for and the last value.
 */
import * as Effect from "effect/Effect"
import { inspect } from "node:util"

/**
 * Milliseconds before the second poll, the factor by which each later pause is longer, and the longest. What comes soon is seen soon, and a
 * long wait leaves the CPU to what it waits for.
 */
const [firstPause, longer, longestPause] = [5, 1.25, 100]
const breath = (polls: number) =>
  new Promise((resolve) => setTimeout(resolve, Math.min(firstPause * longer ** (polls - 1), longestPause)))

/** The machine's time, in milliseconds, which no test moves. */
const now = (): number => Number(process.hrtime.bigint() / 1_000_000n)

/** The longest wait in milliseconds, and the polls that it has at least: a process that gets no CPU time has not waited. */
const [mostMillis, leastPolls] = [15_000, 100]

const isOver = (started: number, polls: number): boolean => polls >= leastPolls && now() - started >= mostMillis

/** The failure of a wait. `last` is the last value, if it is known. */
const waitedFor = (what: string, ...last: ReadonlyArray<unknown>): Error =>
  new Error(
    `Still waiting after 15 seconds: ${what}${
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
  const started = now()
  for (let polls = 1;; polls++) {
    const last = await value()
    if (predicate(last)) return last
    if (isOver(started, polls)) throw waitedFor(what, last)
    await breath(polls)
  }
}

/** Polls until the condition holds. A failure shows its text. */
export const untilHolds = async (holds: () => boolean | Promise<boolean>): Promise<void> => {
  const started = now()
  for (let polls = 1; !await holds(); polls++) {
    if (isOver(started, polls)) throw waitedFor(textOf(holds))
    await breath(polls)
  }
}

/** The same for a condition that is an effect; its place is in the stack of the failure. */
export const untilTrue = <E, R>(holds: Effect.Effect<boolean, E, R>, what = "the effect is true") => {
  const failure = waitedFor(what)
  const poll = (started: number, polls: number): Effect.Effect<void, E, R> =>
    Effect.flatMap(holds, (held) =>
      held
        ? Effect.void
        : isOver(started, polls)
        ? Effect.die(failure)
        : Effect.andThen(Effect.promise(() => breath(polls)), poll(started, polls + 1)))
  return Effect.suspend(() => poll(now(), 1))
}

/** The same for a synchronous condition. */
export const until = (holds: () => boolean): Effect.Effect<void> => Effect.promise(() => untilHolds(holds))
