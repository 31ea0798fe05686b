/**
 * One question for all who need an answer that is not older than their own asking.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"

/**
 * Shares an effect: every waiter gets the result of a run that begins after its wait. Runs do not overlap, and `pause`
 * milliseconds lie between two of them; everyone who comes meanwhile waits for the same one.
 */
export const makeAsking = Effect.fnUntraced(function*<A, E>(ask: Effect.Effect<A, E>, pause: number) {
  const scope = yield* Effect.scope
  const turn = yield* Semaphore.make(1)
  let next: Deferred.Deferred<A, E> | undefined

  const run = (answer: Deferred.Deferred<A, E>) =>
    Effect.suspend(() => {
      next = undefined
      return Deferred.into(ask, answer)
    }).pipe(Effect.andThen(Effect.sleep(pause)), turn.withPermit, Effect.forkIn(scope))

  return Effect.uninterruptibleMask((restore) => {
    if (next !== undefined) return restore(Deferred.await(next))
    const answer = next = Deferred.makeUnsafe<A, E>()
    return Effect.andThen(run(answer), restore(Deferred.await(answer)))
  })
})
