/** The operator that runs a machine over a stream: it emits what the machine emits for the whole input, for streams of every kind. */
import { assert, describe, it } from "@effect/vitest"
import { type Cause, Effect, Queue, Stream } from "effect"
import { transduce } from "../../../src/domain/stream/transduce.ts"
import { type Machine, run } from "../../../src/domain/stream/transducer.ts"

/** Emits each number one step late, so that one is left for the end. */
const oneBehind = (): Machine<number, number> => {
  let held: number | undefined
  return {
    push(input, out) {
      if (held !== undefined) out.push(held)
      held = input
    },
    end(out) {
      if (held !== undefined) out.push(held, -1)
    }
  }
}

const fromQueue = Stream.unwrap(Effect.gen(function*() {
  const queue = yield* Queue.unbounded<number, Cause.Done>()
  yield* Queue.offerAll(queue, [1, 2, 3])
  yield* Queue.end(queue)
  return Stream.fromQueue(queue)
}))

const streams: { readonly [name: string]: Stream.Stream<number> } = {
  make: Stream.make(1, 2, 3),
  rechunked: Stream.rechunk(Stream.make(1, 2, 3), 1),
  "an effect": Stream.fromEffect(Effect.succeed(1)),
  empty: Stream.empty,
  "a queue": fromQueue,
  concatenated: Stream.concat(Stream.make(1), Stream.concat(Stream.make(2), Stream.make(3))),
  flattened: Stream.flatMap(Stream.make(1, 2), (n) => Stream.make(n, n * 10)),
  taken: Stream.take(Stream.iterate(1, (n) => n + 1), 3),
  "taken until": Stream.takeUntil(Stream.iterate(1, (n) => n + 1), (n) => n === 3),
  buffered: Stream.buffer(Stream.make(1, 2, 3), { capacity: 1 }),
  merged: Stream.merge(Stream.make(1), Stream.empty),
  filtered: Stream.filter(Stream.make(1, 2, 3, 4), (n) => n % 2 === 0),
  "mapped by effects": Stream.mapEffect(Stream.make(1, 2, 3), (n) => Effect.succeed(n + 1)),
  transduced: transduce<number, number>(oneBehind)(Stream.make(1, 2, 3))
}

describe("transduce", () => {
  for (const [name, stream] of Object.entries(streams)) {
    it.effect(`emits the held output once at the end: ${name}`, () =>
      Effect.gen(function*() {
        const inputs = yield* Stream.runCollect(stream)
        const outputs = yield* Stream.runCollect(transduce<number, number>(oneBehind)(stream))
        assert.deepStrictEqual(outputs, run(oneBehind, inputs))
      }))
  }

  it.effect("gives a stream that can run again", () =>
    Effect.gen(function*() {
      const transduced = transduce<number, number>(oneBehind)(Stream.make(1, 2, 3))
      assert.deepStrictEqual(yield* Stream.runCollect(transduced), yield* Stream.runCollect(transduced))
    }))

  it.effect("stops reading the stream once the machine is done", () =>
    Effect.gen(function*() {
      let read = 0
      const machine = { push: (input: number, out: Array<number>) => void out.push(input), end: () => undefined }
      const stream = Stream.tap(Stream.rechunk(Stream.make(1, 2, 3), 1), () => Effect.sync(() => read++))
      const outputs = yield* Stream.runCollect(transduce<number, number>(() => machine, () => read === 2)(stream))
      assert.deepStrictEqual(outputs, [1, 2])
      assert.strictEqual(read, 2)
    }))
})
