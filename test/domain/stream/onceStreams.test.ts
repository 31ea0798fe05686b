/** Streams for a single reader, which hand their pull to the next stage: what passes, who may read, and what is left. */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Scope, Stream } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import * as fc from "fast-check"
import {
  type ChunkPull,
  fromPullOnce,
  mapPull,
  once,
  peel,
  pullOf,
  putBack,
  transduce
} from "../../../src/domain/stream/transduce.ts"
import type { FailingMachine } from "../../../src/domain/stream/transducer.ts"

/** Pulls these chunks one by one, then ends; `reads` counts the pulls. */
const pullOfChunks = (chunks: ReadonlyArray<NonEmptyReadonlyArray<number>>) => {
  const counted = { reads: 0 }
  const pull: ChunkPull<number, never> = Effect.suspend(() => {
    const chunk = chunks[counted.reads++]
    return chunk === undefined ? Cause.done() : Effect.succeed(chunk)
  })
  return { counted, pull }
}

const doubled = mapPull((pull: ChunkPull<number, never>) =>
  Effect.map(pull, ([n, ...rest]) => [2 * n, ...rest] as const)
)

/** Passes numbers on until a negative one, which fails. */
class Positive implements FailingMachine<number, number, string> {
  private fault: string | undefined = undefined

  push(input: number, out: Array<number>): void {
    if (input < 0) this.fault = `negative: ${input}`
    else if (this.fault === undefined) out.push(input)
  }

  end(out: Array<number>): void {
    out.push(0)
  }

  failure(): string | undefined {
    return this.fault
  }
}

const chunks = fc.array(fc.tuple(fc.integer({ min: -1, max: 9 }), fc.nat(9)), { maxLength: 4 })

/** The chunks of a stream, and how it ends. */
const chunksOf = <E>(stream: Stream.Stream<number, E>) =>
  Effect.gen(function*() {
    const seen: Array<ReadonlyArray<number>> = []
    const exit = yield* Effect.exit(Stream.runForEachArray(stream, (chunk) => Effect.sync(() => seen.push(chunk))))
    return { seen, exit }
  })

describe("a stream for a single reader", () => {
  it.effect("gives the same chunks through every operator as a stream that is not one", () =>
    Effect.gen(function*() {
      for (const given of fc.sample(chunks, 100)) {
        const usual = transduce<number, number, string>(() => new Positive())(doubled(Stream.fromArrays(...given)))
        const single = fromPullOnce(pullOfChunks(given).pull)
        const seen = transduce<number, number, string>(once(new Positive()))(doubled(single))
        assert.deepStrictEqual(yield* chunksOf(seen), yield* chunksOf(usual))
      }
    }))

  it.effect("refuses a second reader", () =>
    Effect.gen(function*() {
      const stream = fromPullOnce(pullOfChunks([[1]]).pull)
      assert.deepStrictEqual(yield* Stream.runCollect(stream), [1])
      assert.isTrue(Exit.isFailure(yield* Effect.exit(Stream.runCollect(stream))))
      assert.throws(() => doubled(stream), "single reader")
    }))

  it.effect("is read no further than it is asked for", () =>
    Effect.gen(function*() {
      const { counted, pull } = pullOfChunks([[1], [2], [3]])
      const scope = Scope.makeUnsafe()
      const [first, rest] = yield* peel(doubled(fromPullOnce(pull)), scope)
      assert.deepStrictEqual(first, [2])
      assert.strictEqual(counted.reads, 1)
      assert.deepStrictEqual(yield* Stream.runCollect(rest), [4, 6])
    }))
})

describe("peel", () => {
  it.effect("gives the first chunk and the rest of any stream, and ends for an empty one", () =>
    Effect.gen(function*() {
      const scope = Scope.makeUnsafe()
      const [first, rest] = yield* peel(Stream.fromArrays([1, 2], [3]), scope)
      assert.deepStrictEqual(first, [1, 2])
      assert.deepStrictEqual(yield* Stream.runCollect(rest), [3])
      assert.isTrue(Cause.isDone(yield* Effect.flip(peel(Stream.empty, scope))))
    }))
})

describe("putBack", () => {
  it.effect("gives the chunk that was taken before those that follow", () =>
    Effect.gen(function*() {
      const { pull } = pullOfChunks([[1], [2, 3]])
      const taken = yield* pull
      assert.deepStrictEqual(yield* Stream.runCollect(putBack(taken, pull)), [1, 2, 3])
    }))
})

describe("a machine that fails", () => {
  it.effect("fails its stream after the outputs before the failure, without its end, and reads no more", () =>
    Effect.gen(function*() {
      const { counted, pull } = pullOfChunks([[1], [2, -3, 4], [5]])
      const scope = Scope.makeUnsafe()
      const checked = yield* pullOf(transduce<number, number, string>(once(new Positive()))(fromPullOnce(pull)), scope)
      assert.deepStrictEqual([yield* checked, yield* checked], [[1], [2]])
      assert.strictEqual(yield* Effect.flip(checked), "negative: -3")
      assert.strictEqual(counted.reads, 2)
    }))
})
