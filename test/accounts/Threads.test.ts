import { assert, describe, it } from "@effect/vitest"
import { Threads } from "../../src/accounts/Threads.ts"
import type { Thread } from "../../src/domain/warmth.ts"

const thread = (at: number): Thread => ({
  upstream: "u",
  model: "m",
  account: "a",
  at,
  lifetime: 1,
  tokens: 1,
  bytes: 1,
  tools: 0,
  hasSystem: false,
  opening: 0,
  elements: 1,
  step: 1,
  sums: Uint32Array.of(1)
})

const times = (threads: ReadonlyArray<Thread>) => threads.map(({ at }) => at)

describe("threads", () => {
  it("are eight of a session at most, the newest last, each in place of the one that it continues", () => {
    const threads = new Threads()
    for (let at = 0; at < 9; at++) threads.keep("s", thread(at), undefined)
    assert.deepStrictEqual(times(threads.of("s")), [1, 2, 3, 4, 5, 6, 7, 8])
    threads.keep("s", thread(9), threads.of("s")[2])
    assert.deepStrictEqual(times(threads.of("s")), [1, 2, 4, 5, 6, 7, 8, 9])
    assert.deepStrictEqual(threads.of("another"), [])
  })

  it("are 10,000 in all at most, of which those of the session used longest ago go first", () => {
    const threads = new Threads()
    for (const at of [0, 1]) threads.keep("first", thread(at), undefined)
    for (let i = 0; i < 9_997; i++) threads.keep(`s${i}`, thread(i), undefined)
    threads.keep("s0", thread(7), threads.of("s0")[0])
    threads.keep("last", thread(8), undefined)
    assert.deepStrictEqual(times(threads.of("first")), [0, 1])
    threads.keep("more", thread(9), undefined)
    assert.deepStrictEqual(times(threads.of("first")), [1])
    threads.keep("more", thread(10), undefined)
    threads.keep("more", thread(11), undefined)
    assert.deepStrictEqual([times(threads.of("first")), times(threads.of("s1")), times(threads.of("s0"))], [[], [], [
      7
    ]])
  })
})
