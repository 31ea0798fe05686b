import { assert, describe, it } from "@effect/vitest"
import { defaultLimits } from "../../src/domain/limits.ts"
import {
  UpstreamCall,
  type UpstreamEvent,
  UpstreamFinish,
  UpstreamReasoning,
  UpstreamText,
  UpstreamUsage
} from "../../src/domain/UpstreamEvent.ts"
import { RequestBudget } from "../../src/upstream/budget.ts"

/** A clock that stands where a test puts it. */
const clockAt = (start: number) => {
  let millis = start
  return {
    monotonicTimeNanosUnsafe: () => BigInt(millis) * 1_000_000n,
    pass: (more: number) => void (millis += more)
  }
}

const make = (limits: Partial<typeof defaultLimits> = {}, clock = clockAt(5)) =>
  new RequestBudget({ ...defaultLimits, ...limits }, clock)

const times = <A>(count: number, f: () => A): Array<A> => Array.from({ length: count }, f)

describe("a request's budget", () => {
  it("has 40 calls", () => {
    const budget = make()
    assert.deepStrictEqual(times(41, () => budget.takeCall()), [...times(40, () => true), false])
  })

  it("has 16 continues, and ends after three in a row that bring nothing", () => {
    const budget = make()
    const grows = () => {
      budget.addChars(1)
      return budget.takeContinue()
    }
    assert.deepStrictEqual(times(17, grows), [...times(16, () => true), false])
    const idle = make()
    assert.deepStrictEqual(times(4, () => idle.takeContinue()), [true, true, true, false])
  })

  it("has 8 resumes after growing pauses, and ends after three in a row that bring nothing", () => {
    const budget = make()
    const grows = () => {
      budget.addChars(1)
      return budget.takeResume()
    }
    assert.deepStrictEqual(times(9, grows), [0, 100, 200, 400, 800, 1600, 3200, 3200, undefined])
    const idle = make()
    assert.deepStrictEqual(times(4, () => idle.takeResume()), [0, 100, 200, undefined])
  })

  it("counts rounds over all attempts, but not what an attempt brought", () => {
    const budget = make({ reply_chars: 3, reply_calls: 1 })
    for (let i = 0; i < 3; i++) assert.isDefined(budget.takeResume())
    assert.strictEqual(budget.addChars(4), 3)
    assert.isTrue(budget.addCall())
    assert.isFalse(budget.addCall())
    budget.startReply()
    assert.strictEqual(budget.addChars(2), 2)
    assert.isTrue(budget.addCall())
    assert.strictEqual(budget.takeResume(), 400)
  })

  it("accepts bytes up to the limit, and not one more", () => {
    const budget = make({ reply_bytes: 10 })
    assert.deepStrictEqual([budget.addBytes(9), budget.addBytes(1), budget.addBytes(1)], [true, true, false])
  })

  it("knows what time is left, in all and for progress", () => {
    const clock = clockAt(77)
    const budget = make({ reply_seconds: 100, progress_seconds: 30 }, clock)
    assert.deepStrictEqual(budget.timeLeft(0), { millis: 30_000, of: "progress" })
    clock.pass(20_000)
    assert.deepStrictEqual(budget.timeLeft(20_000), { millis: 10_000, of: "progress" })
    budget.addWaiting(20_000)
    assert.deepStrictEqual(budget.timeLeft(0), { millis: 10_000, of: "progress" })
    budget.addChars(1)
    assert.deepStrictEqual(budget.timeLeft(0), { millis: 30_000, of: "progress" })
    clock.pass(75_000)
    assert.deepStrictEqual(budget.timeLeft(0), { millis: 5_000, of: "reply" })
  })

  it("lets events through up to the last character, and ends them there as by length", () => {
    const events = (): Array<UpstreamEvent> => [
      UpstreamText("ab"),
      UpstreamReasoning("cd"),
      UpstreamUsage({ completionTokens: 1 }),
      UpstreamCall(0, "id", "ef", "gh"),
      UpstreamFinish("stop")
    ]
    const admitted = (limit: number) => {
      const list = events()
      return [make({ reply_chars: limit }).admit(list, 0), list] as const
    }
    const end = UpstreamFinish("length")
    assert.deepStrictEqual(admitted(8), [false, events()])
    assert.deepStrictEqual(admitted(7), [true, [...events().slice(0, 3), UpstreamCall(0, "id", "ef", "g"), end]])
    assert.deepStrictEqual(admitted(5), [true, [...events().slice(0, 3), end]])
    assert.deepStrictEqual(admitted(4), [true, [...events().slice(0, 3), end]])
    assert.deepStrictEqual(admitted(3), [true, [UpstreamText("ab"), UpstreamReasoning("c"), end]])
    const pair: Array<UpstreamEvent> = [UpstreamText("a🌍")]
    assert.isTrue(make({ reply_chars: 2 }).admit(pair, 0))
    assert.deepStrictEqual(pair, [UpstreamText("a"), end])
  })
})
