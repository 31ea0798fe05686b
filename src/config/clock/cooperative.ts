/**
 * Cooperative scheduling: long work that yields to other tasks, turns of the event loop, and runs that callers share.
 */
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { Cooperative, SliceSize } from "../../domain/stream/cooperative.ts"

/** Called with every full slice; tests count them. */
export const CurrentSliceWatch = Context.Reference<(size: SliceSize) => void>("model-gateway/stream/SliceWatch", {
  defaultValue: () => () => undefined
})

/**
 * Starts cooperative work synchronously, for callers that already run. Only the work after the first slice is a separate
 * effect.
 */
export const startCooperatively = <A>(work: Cooperative<A>): Effect.Effect<A> => {
  const first = work.next()
  return first.done === true ? Effect.succeed(first.value) : goOn(work, first.value)
}

/** Runs cooperative work. Other tasks, I/O included, run after each slice. */
export const runCooperatively = <A>(work: Cooperative<A>): Effect.Effect<A> =>
  Effect.suspend(() => startCooperatively(work))

const goOn = Effect.fnUntraced(function*<A>(work: Cooperative<A>, first: SliceSize) {
  const watch = yield* CurrentSliceWatch
  watch(first)
  for (;;) {
    yield* Effect.yieldNow
    const next = work.next()
    if (next.done === true) return next.value
    watch(next.value)
  }
})

export class Turns {
  private readonly waiting = new Set<() => void>()
  private readonly most: number
  private isScheduled = false

  /** Calls at most `most` functions in one turn of the event loop. */
  constructor(most: number) {
    this.most = most
  }

  /** Queues `serve`. A function that is already queued keeps its place. */
  join(serve: () => void): void {
    this.waiting.add(serve)
    this.schedule()
  }

  leave(serve: () => void): void {
    this.waiting.delete(serve)
  }

  private schedule(): void {
    if (this.isScheduled || this.waiting.size === 0) return
    this.isScheduled = true
    setImmediate(this.turn)
  }

  private readonly turn = (): void => {
    this.isScheduled = false
    let served = 0
    for (const serve of this.waiting) {
      if (served++ === this.most) break
      this.waiting.delete(serve)
      serve()
    }
    this.schedule()
  }
}

/**
 * Shares runs of an effect: every waiter gets the result of a run that begins after its call. Runs do not overlap and are
 * `pause` milliseconds apart; all callers in between share the next one.
 */
export const shareRuns = Effect.fnUntraced(function*<A, E>(ask: Effect.Effect<A, E>, pause: number) {
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
