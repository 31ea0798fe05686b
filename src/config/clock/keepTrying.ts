/** Work that must succeed sometime, such as a write while a disk is full. */
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"

/** Pauses between two tries: a second, then twice as long each time, and a minute at most. */
const pauses = Schedule.min([Schedule.exponential("1 second"), Schedule.spaced("1 minute")])

/**
 * Makes an effect that tries `work` once and says whether it succeeded. Where it did not, it is tried again until it does or
 * the scope ends: one at a time, and by one fiber whatever asks for it meanwhile. `failed` is run where that begins.
 */
export const keepTrying = Effect.fnUntraced(function*<E>(
  work: Effect.Effect<void, E>,
  failed: (error: E) => Effect.Effect<void>
): Effect.fn.Return<Effect.Effect<boolean>, never, Scope.Scope> {
  const scope = yield* Effect.scope
  const once = Semaphore.makeUnsafe(1).withPermit(work)
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
