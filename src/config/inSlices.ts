/** Runs long work so that everybody else is served meanwhile. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Sliced, SliceSize } from "../domain/stream/slices.ts"

/** Is told of every full slice; tests count them. */
export const CurrentSliceWatch = Context.Reference<(size: SliceSize) => void>("model-gateway/stream/SliceWatch", {
  defaultValue: () => () => undefined
})

/** Begins sliced work at once, for whoever runs already; only what is left after the first slice is an effect of its own. */
export const begunInSlices = <A>(work: Sliced<A>): Effect.Effect<A> => {
  const first = work.next()
  return first.done === true ? Effect.succeed(first.value) : goOn(work, first.value)
}

/** Runs sliced work to its end; other tasks, input and output included, run after each slice. */
export const inSlices = <A>(work: Sliced<A>): Effect.Effect<A> => Effect.suspend(() => begunInSlices(work))

const goOn = Effect.fnUntraced(function*<A>(work: Sliced<A>, first: SliceSize) {
  const watch = yield* CurrentSliceWatch
  watch(first)
  for (;;) {
    yield* Effect.yieldNow
    const next = work.next()
    if (next.done === true) return next.value
    watch(next.value)
  }
})
