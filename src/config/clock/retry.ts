/**
 * Retries: pauses between attempts, and work that is repeated until it succeeds.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import { shareRuns } from "./cooperative.ts"

/** Factor of all pauses: 1, or 0 in tests that skip them. */
export const CurrentPace = Context.Reference<number>("model-gateway/clock/Pace", { defaultValue: () => 1 })

/** Sleeps for `millis` times `CurrentPace`. */
export const pause = (millis: number): Effect.Effect<void> =>
  Effect.flatMap(CurrentPace, (pace) => pace === 0 ? Effect.yieldNow : Effect.sleep(millis * pace))

/** Backoff from one second to four, so that work is done within five seconds of being possible. */
const pauses = Schedule.min([Schedule.exponential("1 second"), Schedule.spaced("4 seconds")])

/**
 * Makes an effect that runs `work` once and returns whether it succeeded. Callers at the same time share a run. After a failure,
 * one fiber retries until success or the end of the scope, however many callers there are. `failed` runs when the retries begin.
 */
export const retryUntilDone = Effect.fnUntraced(function*<E>(
  work: Effect.Effect<void, E>,
  failed: (error: E) => Effect.Effect<void>
): Effect.fn.Return<Effect.Effect<boolean>, never, Scope.Scope> {
  const scope = yield* Effect.scope
  const once = yield* shareRuns(work, 0)
  let retrying = false
  const retry = (error: E) =>
    Effect.suspend(() => {
      if (retrying) return Effect.void
      retrying = true
      const again = Effect.delay(Effect.retry(once, pauses), "1 second").pipe(
        Effect.ensuring(Effect.sync(() => {
          retrying = false
        })),
        Effect.ignore,
        Effect.forkIn(scope)
      )
      return Effect.andThen(failed(error), again)
    })
  return Effect.uninterruptible(Effect.matchEffect(once, {
    onFailure: (error) => Effect.as(retry(error), false),
    onSuccess: () => Effect.succeed(true)
  }))
})
