/** The oracle of the soak: the replies that it accepts, and the deviations that it finds. */
import { assert, describe, it } from "@effect/vitest"
import type { Received } from "../../bench/soak/client.ts"
import { faultRows } from "../../bench/soak/faults.ts"
import { judge } from "../../bench/soak/oracle.ts"
import { type Plan, planOf, styles } from "../../bench/soak/plan.ts"
import { World } from "../../bench/soak/world.ts"
import type { ErrorCode } from "../../src/domain/GatewayError.ts"
import { faultNames, replyWith } from "../../src/testing/provider/faults.ts"
import { nextCut } from "../../src/testing/provider/Reply.ts"
import { replyTo } from "../../src/testing/provider/script.ts"
import { mostContinues } from "../../src/upstream/budget.ts"
import { chunk, failure, frame, plain, plan, streamed } from "./answers.ts"

const none: ReadonlySet<ErrorCode> = new Set()

const role = chunk({ role: "assistant" })
const text = chunk({ content: "one" }) + chunk({ content: " two" })
const stop = chunk({}, "stop")
const done = frame("[DONE]")

const outcome = (received: Received, change: Partial<Plan> = {}, explained = none): string =>
  judge({ ...plan, ...change }, received, explained).outcome

const fault = (name: string, effect: string) =>
  faultRows.find((row) => row.name === name && row.effect === effect && row.hurts !== true)

describe("the oracle of the soak", () => {
  it("accepts the complete reply, streamed and whole", () => {
    assert.strictEqual(outcome(streamed(role + text + stop + done)), "whole")
    const message = { role: "assistant", content: "one two" }
    const reply = plain(200, { id: "a", choices: [{ index: 0, message, finish_reason: "stop" }] })
    assert.strictEqual(outcome(reply, { stream: false }), "whole")
  })

  it("rejects every deviation from the expected reply", () => {
    const departures: Readonly<Record<string, Received>> = {
      "another word": streamed(role + chunk({ content: "one" }) + chunk({ content: " too" }) + stop + done),
      "a word too few": streamed(role + chunk({ content: "one" }) + stop + done),
      "a word too many": streamed(role + text + chunk({ content: "!" }) + stop + done),
      "text twice": streamed(role + text + text + stop + done),
      "reasoning that nobody asked for": streamed(role + chunk({ reasoning_content: "hm" }) + text + stop + done),
      "a call that nobody asked for": streamed(
        role + text + chunk({ tool_calls: [{ index: 0, function: { name: "a", arguments: "{}" } }] }) + stop + done
      ),
      "another finish reason": streamed(role + text + chunk({}, "length") + done),
      "no finish reason": streamed(role + text + done),
      "no [DONE]": streamed(role + text + stop),
      "no role": streamed(text + stop + done),
      "a frame after the end": streamed(role + text + stop + done + text),
      "a frame that is no JSON": streamed(role + frame("{") + text + stop + done),
      "a connection that breaks off": streamed(role + text, { how: "broken" }),
      "no stream": plain(200, { id: "a", choices: [] }),
      "nothing at all": streamed("", { how: "broken", status: 0, contentType: "" }),
      "an error that nothing explains": plain(503, failure("upstream_error")),
      "an error in the stream that nothing explains": streamed(role + text + frame(failure("upstream_error")) + done)
    }
    for (const [name, received] of Object.entries(departures)) assert.strictEqual(outcome(received), "untrue", name)
    assert.strictEqual(outcome(streamed(role, { how: "hung" })), "hung")
  })

  it("accepts an error with the status and code that the request's own fault causes", () => {
    const fatal = { fault: fault("trouble", "fatal") }
    assert.strictEqual(outcome(plain(503, failure("upstream_error")), fatal), "error")
    assert.strictEqual(outcome(plain(500, failure("upstream_error")), fatal), "untrue")
    assert.strictEqual(outcome(plain(503, failure("upstream_timeout")), fatal), "untrue")
    assert.strictEqual(outcome(streamed(role + text + stop + done), fatal), "untrue")
    const passing = { fault: fault("trouble", "passing") }
    assert.strictEqual(outcome(plain(503, failure("upstream_error")), passing), "untrue")
    assert.strictEqual(outcome(streamed(role + text + stop + done), passing), "whole")
    const shown = { fault: fault("broken-line", "shown") }
    const failed = frame(failure("upstream_error")) + done
    assert.strictEqual(outcome(streamed(role + chunk({ content: "one" }) + failed), shown), "error")
    assert.strictEqual(outcome(streamed(role + chunk({ content: "two" }) + failed), shown), "untrue")
  })

  it("accepts an error that a change of the configuration explains for the request and its time", () => {
    let now = 0
    const world = new World(() => now)
    const change = world.explain(["model_not_found"], ({ model }) => model === "mine")
    now = 10
    change.end()
    const codes = (model: string, from: number, to: number) => [...world.explained({ ...plan, model }, from, to)]
    assert.deepStrictEqual(codes("mine", 5, 20), ["model_not_found"])
    assert.deepStrictEqual(codes("mine", 11, 20), [])
    assert.deepStrictEqual(codes("other", 5, 20), [])
    const refused = plain(400, failure("model_not_found"))
    assert.strictEqual(outcome(refused, {}, new Set(codes("mine", 5, 20))), "error")
    assert.strictEqual(outcome(refused, {}, new Set(codes("mine", 11, 20))), "untrue")
  })

  it("accepts the beginning of the reply if the client disconnects", () => {
    const leaves = { behaviour: { _tag: "Leaves", when: "stream", after: 0 } } as const
    assert.strictEqual(outcome(streamed(role + chunk({ content: "one" }), { how: "left" }), leaves), "left")
    assert.strictEqual(outcome(streamed(role + chunk({ content: "two" }), { how: "left" }), leaves), "untrue")
  })
})

describe("the plans of the soak", () => {
  const plans = Array.from({ length: 20_000 }, (_, number) => planOf("a seed", number))

  it("follow from the seed and the number", () => {
    assert.deepStrictEqual(planOf("a seed", 17), plans[17])
    assert.notDeepEqual(planOf("another seed", 17), plans[17])
  })

  it("contain every style, kind, behaviour, credential and fault, streamed and whole", () => {
    const seen = new Set(plans.flatMap(({ behaviour, credential, fault, kind, stream, style }) => [
      `${style} ${kind} ${stream}`,
      behaviour._tag === "Leaves" ? behaviour.when : behaviour._tag,
      credential,
      ...(fault?.lines ?? [])
    ]))
    for (const style of styles) {
      for (const kind of ["text", "reasoning", "tools", "long", "structured"]) {
        for (const stream of [true, false]) assert.isTrue(seen.has(`${style} ${kind} ${stream}`), `${style} ${kind}`)
      }
    }
    for (
      const each of ["Reads", "Slow", "Stalls", "queue", "half-body", "before", "stream", "key", "churn", "direct"]
    ) {
      assert.isTrue(seen.has(each), each)
    }
    for (const { lines } of faultRows) for (const line of lines) assert.isTrue(seen.has(line), line)
  })

  it("keep the cut that their fault needs, also if their script has another cut", () => {
    const cutTwice = plans.filter(({ prompt }) => prompt.split("\n!cut").length > 2)
    assert.isNotEmpty(cutTwice)
    for (const { fault, number, prompt } of cutTwice) {
      const reply = replyTo(
        { prompt, thinking: false, search: false, earlier: [] },
        { pace: undefined, burst: 1 },
        prompt
      )
      assert.include(fault?.lines ?? [], `!cut ${reply.cuts.every}`, `${number}`)
      assert.isDefined(nextCut(reply, 0), `${number}`)
    }
  })

  it("have at most as many cuts as the gateway resumes, except for the endless fault", () => {
    const cut = plans.filter(({ fault, prompt }) => prompt.includes("\n!cut") && fault?.name !== "endless-incomplete")
    // The output that a fault adds is cut too: each of these cuts may meet any of these faults.
    const longer = faultRows.filter(({ name }) => name === "unknown-parts" || name === "empty-fragment")
    for (const { number, prompt } of cut) {
      for (const fault of longer) {
        const planned = replyTo(
          { prompt, thinking: false, search: false, earlier: [] },
          { pace: undefined, burst: 1 },
          prompt
        )
        const reply = replyWith(fault, planned)
        let continues = 0
        for (let at = nextCut(reply, 0); at !== undefined; at = nextCut(reply, at)) continues++
        assert.isAtMost(continues, mostContinues, `${number}`)
      }
    }
  })

  it("contain every fault of the reference upstream", () => {
    const planned = new Set([...faultRows.map(({ name }) => name), "long-line"])
    assert.isTrue(plans.some(({ prompt }) => prompt.includes("!fault long-line")), "what clients stall on")
    assert.deepStrictEqual(faultNames.filter((name) => !planned.has(name)), [])
  })
})
