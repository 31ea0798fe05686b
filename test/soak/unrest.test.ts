/** The disturbances of the soak: the outcomes that each explains, and the schedule. */
import { assert, describe, it } from "@effect/vitest"
import type { Received } from "../../bench/soak/client.ts"
import { judge, judgeReset } from "../../bench/soak/oracle.ts"
import { isRefusal, refusedAt, Schedule, Unrest } from "../../bench/soak/unrest.ts"
import { chunk, failure, frame, plain, plan, streamed } from "./answers.ts"

const broken = (change: Partial<Received> = {}): Received =>
  streamed("", { how: "broken", status: 0, node: 1, port: 40_000, began: 50, ended: 1200, ...change })

describe("a failover", () => {
  const unrest = new Unrest()
  const failover = unrest.begin("failover", "killed", 10_000)

  it("explains refusals from its cause until three seconds after the new primary answers", () => {
    assert.strictEqual(unrest.refusing(50_000), failover, "no new primary yet")
    failover.over = 12_000
    assert.isUndefined(unrest.refusing(9_999))
    assert.strictEqual(unrest.refusing(10_000), failover)
    assert.strictEqual(unrest.refusing(15_000), failover)
    assert.isUndefined(unrest.refusing(15_001))
  })

  it("explains the loss of what was written in the second before it, or until then", () => {
    assert.isUndefined(unrest.losing(8_999))
    assert.strictEqual(unrest.losing(9_000), failover)
    assert.strictEqual(unrest.losing(15_000), failover)
    assert.isUndefined(unrest.losing(15_001))
  })

  it("counts refusals and keeps the last", () => {
    unrest.refuse(failover, 11_000)
    unrest.refuse(failover, 10_500)
    assert.deepInclude(failover, { refused: 2, lastRefusal: 11_000 })
  })

  it("explains no reset, and a replacement or a crash no refusal", () => {
    assert.isUndefined(unrest.resetting(broken({ ended: 11_000 })))
    const roll = unrest.begin("roll", "roll", 20_000)
    assert.isUndefined(unrest.refusing(20_001))
    assert.isUndefined(unrest.losing(20_001))
    assert.strictEqual(unrest.during(20_001), roll)
  })
})

describe("a refusal by the store", () => {
  const refusal = failure("store_unavailable")
  const message = "The gateway's shared store does not answer"

  it("counts from the response head, in a stream from its end", () => {
    assert.strictEqual(refusedAt({ status: 503, answered: 10, ended: 20 }), 10)
    assert.strictEqual(refusedAt({ status: 200, answered: 10, ended: 20 }), 20)
  })

  it("is recognized in every style, and is an error only if it is explained", () => {
    const received = plain(503, refusal)
    assert.isTrue(isRefusal(received))
    assert.isTrue(isRefusal(plain(503, { error: { status: "UNAVAILABLE", message } })))
    assert.isFalse(isRefusal(plain(503, failure("upstream_error"))))
    assert.strictEqual(judge(plan, received, new Set()).outcome, "untrue")
    assert.strictEqual(judge(plan, received, new Set(["store_unavailable"])).outcome, "error")
    const bad = { ...plan, kind: "bad" } as const
    assert.strictEqual(judge(bad, received, new Set(["store_unavailable"])).outcome, "error")
    assert.strictEqual(judge(bad, received, new Set()).outcome, "untrue")
  })

  it("may end a stream before its first word, and not later", () => {
    const end = frame(refusal) + frame("[DONE]")
    const role = chunk({ role: "assistant" })
    const word = chunk({ content: "one" })
    const explained = new Set(["store_unavailable"] as const)
    assert.strictEqual(judge(plan, streamed(role + end), explained).outcome, "error")
    assert.strictEqual(judge(plan, streamed(role + word + end), explained).outcome, "untrue")
  })
})

describe("the crash of a worker", () => {
  const unrest = new Unrest()
  const kill = unrest.begin("kill", "kill", 900)
  kill.crash = { node: 1, stopped: 1000, killed: 1010, ports: new Set([40_000]) }

  it("explains the end of the worker's connections at that time", () => {
    assert.strictEqual(unrest.resetting(broken()), kill)
    for (const other of [{ ended: 999 }, { ended: 3011 }, { node: 0 }, { port: 40_001 }, { how: "whole" as const }]) {
      assert.isUndefined(unrest.resetting(broken(other)), JSON.stringify(other))
    }
    for (const began of [1005, 1510]) {
      assert.strictEqual(unrest.resetting(broken({ port: 40_001, began, ended: 1600 })), kill, "it arrives then")
    }
    assert.isUndefined(unrest.resetting(broken({ port: 40_001, began: 1511, ended: 1600 })))
  })

  it("counts the worker's connections apart from those that arrive for it", () => {
    for (const port of [40_000, 40_001, 40_002]) unrest.reset(kill, port)
    assert.deepInclude(kill, { resets: 1, arrivals: 2 })
  })

  it("accepts the beginning of the reply, and nothing else", () => {
    const text = (content: string) => chunk({ role: "assistant", content })
    const none = new Set<never>()
    const outcome = (body: string) => judgeReset(plan, streamed(body, { how: "broken" }), none).outcome
    assert.strictEqual(outcome(text("one")), "reset")
    assert.strictEqual(outcome(""), "reset")
    assert.strictEqual(outcome(text("two")), "untrue")
    assert.strictEqual(judgeReset(plan, broken(), none).outcome, "reset")
    assert.strictEqual(judgeReset({ ...plan, kind: "bad" }, broken(), none).outcome, "reset")
  })
})

describe("the schedule", () => {
  it("takes what is due longest, once for each period", () => {
    const schedule = new Schedule({ failover: 300, roll: 420, kill: 0 })
    assert.isUndefined(schedule.next(299))
    assert.strictEqual(schedule.next(500), "failover")
    assert.strictEqual(schedule.next(500), "roll")
    assert.isUndefined(schedule.next(500))
    assert.strictEqual(schedule.next(900), "failover")
    assert.strictEqual(schedule.next(900), "roll")
    assert.strictEqual(schedule.next(900), "failover")
    assert.isUndefined(schedule.next(900))
  })
})
