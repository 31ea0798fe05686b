/** What is expected of the cache of a server, and why it was missed: by properties, and a row for each reason. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { crc32 } from "node:zlib"
import { type Conversation, plainConversation, Text, type Turn } from "../../src/domain/Conversation.ts"
import { runSync } from "../../src/domain/stream/cooperative.ts"
import {
  type Answerer,
  expectationOf,
  judgeCache,
  mostSums,
  type MoveCause,
  type ReportedPrompt,
  sumPrompt,
  type TextMeasure,
  type Thread,
  threadOf
} from "../../src/domain/warmth.ts"
import { runs } from "../support/effort.ts"

const lifetime = 300_000

interface Told {
  readonly tools?: ReadonlyArray<string>
  readonly system?: string
  /** User and assistant in turn. */
  readonly said: ReadonlyArray<string>
}

const conversationOf = ({ said, system, tools = [] }: Told): Conversation => ({
  ...plainConversation,
  turns: [
    ...(system === undefined ? [] : [{ role: "system", parts: [Text(system)] } satisfies Turn]),
    ...said.map((text, i): Turn => ({ role: i % 2 === 0 ? "user" : "assistant", parts: [Text(text)] }))
  ],
  tools: tools.map((name) => ({ name, parameters: { type: "object" } }))
})

const measure: TextMeasure = { sum: crc32, bytes: (text) => Buffer.byteLength(text) }
const sumsOf = (told: Told) => runSync(sumPrompt(conversationOf(told), measure))

const here: Answerer = { upstream: "vendor", model: "m", account: "a1" }

const answered = (told: Told, tokens: number, given: Partial<Thread> = {}): Thread => ({
  ...threadOf(sumsOf(told), { ...here, at: 0, lifetime, tokens }),
  ...given
})

const expected = (told: Told, threads: ReadonlyArray<Thread>, given: {
  readonly answerer?: Answerer
  readonly because?: MoveCause
  readonly least?: number
  readonly now?: number
} = {}) => {
  const { answerer = here, because = "full", now = 1_000 } = given
  return expectationOf(sumsOf(told), threads, answerer, now, () => because)
}

const usage = (promptTokens: number, cachedTokens: number, isReported = true): ReportedPrompt => ({
  promptTokens,
  cachedTokens,
  cacheWriteTokens: 5,
  isReported
})

const before: Told = { tools: ["ant", "zebra"], system: "Be brief.", said: ["one", "two", "three"] }
const after: Told = { ...before, said: [...before.said, "four", "five"] }
const text = fc.string({ maxLength: 12 })
const told = fc.record({
  tools: fc.array(text, { maxLength: 4 }),
  system: fc.option(text, { nil: undefined }),
  said: fc.array(text, { minLength: 1, maxLength: 9 })
}).map(({ system, ...rest }): Told => system === undefined ? rest : { ...rest, system })

describe("the sums of a prompt", () => {
  it("take a long text in pieces, never character by character", () => {
    let calls = 0
    const counting: TextMeasure = { ...measure, sum: (text, before) => (calls++, crc32(text, before)) }
    runSync(sumPrompt(conversationOf({ said: ["a".repeat(1_000_000)] }), counting))
    assert.isAtMost(calls, 20)
  })
})

describe("an expectation", () => {
  it("is the whole prompt of the turn before, where the next one begins with it", () => {
    fc.assert(
      fc.property(told, fc.array(text, { minLength: 1, maxLength: 4 }), fc.nat(9_999), (first, more, tokens) => {
        const found = expected({ ...first, said: [...first.said, ...more] }, [answered(first, tokens)])
        assert.strictEqual(found.predicted, tokens)
        assert.isUndefined(found.at)
      }),
      { numRuns: runs(200) }
    )
  })

  it("names the first element that differs, and predicts what comes before it by its share of the bytes", () => {
    fc.assert(
      fc.property(told, fc.nat(), (first, seed) => {
        const { said, system, tools = [] } = first
        const places = [
          ...tools.map((_, i) => `tools[${i}]`),
          ...(system === undefined ? [] : ["system"]),
          ...said.map((_, i) => `messages[${i}]`)
        ]
        const index = seed % places.length
        const place = places[index]!
        const changed = (texts: ReadonlyArray<string>, name: string) =>
          texts.map((text, i) => place === `${name}[${i}]` ? `${text}!` : text)
        const next: Told = {
          tools: changed(tools, "tools"),
          ...(system === undefined ? {} : { system: place === "system" ? `${system}!` : system }),
          // One more pair of turns makes it the next turn of the same conversation.
          said: [...changed(said, "messages"), "and", "so on"]
        }
        const found = expected(next, [answered(first, 1_000)])
        assert.strictEqual(found.at, place)
        const { ends } = sumsOf(first)
        const share = index === 0 ? 0 : ends[index - 1]! / ends.at(-1)!
        assert.strictEqual(found.predicted, Math.floor(1_000 * share))
      }),
      { numRuns: runs(200) }
    )
  })

  it("tells an element that is gone from one that is there", () => {
    const of = (next: Told) => expected(next, [answered(before, 100)]).at
    assert.strictEqual(of({ ...after, tools: ["ant"] }), "tools[1]")
    assert.strictEqual(of({ ...after, tools: ["ant", "bee", "zebra"] }), "tools[1]")
    assert.strictEqual(of({ tools: before.tools!, said: after.said }), "system")
    assert.strictEqual(of({ ...before, said: ["one"] }), "messages[1]")
  })

  it("keeps a sum of every second element, or fewer, of long conversations, and still finds each change", () => {
    const said = Array.from({ length: 3 * mostSums }, (_, i) => `turn ${i}`)
    const thread = answered({ said }, 10_000)
    assert.isAtMost(thread.sums.byteLength, 1_024)
    assert.strictEqual(thread.step, 4)
    assert.strictEqual(expected({ said: [...said, "next"] }, [thread]).predicted, 10_000)
    const changed = said.map((text, i) => i === 401 ? "other" : text)
    const found = expected({ said: changed }, [thread])
    assert.strictEqual(found.at, "messages[400]")
    assert.isBelow(found.predicted, 10_000)
  })

  it("is compared with the thread that has the longest beginning in common, or the same first turn", () => {
    const main = answered(before, 100)
    const side = answered({ system: "Name it.", said: ["one"] }, 10)
    const shorter = answered({ ...before, said: ["one"] }, 50)
    assert.strictEqual(expected(after, [main, shorter, side]).thread, main)
    assert.strictEqual(expected({ ...after, tools: [] }, [main]).thread, main)
    assert.isUndefined(expected({ ...before, said: ["another question"] }, [main, side]).thread)
  })

  it("does not depend on marks, which move from turn to turn", () => {
    const marked = conversationOf(before)
    const turns = marked.turns.map((turn): Turn => ({
      ...turn,
      parts: turn.parts.map((part) => ({
        ...part,
        vendorFields: { vendor: "messages", fields: { cache_control: { type: "ephemeral" } } }
      }))
    }))
    assert.deepStrictEqual(runSync(sumPrompt({ ...marked, turns }, measure)), sumsOf(before))
  })
})

describe("a reason", () => {
  const thread = answered(before, 100)
  const late = { now: lifetime + 2_000 }
  const elsewhere = { answerer: { ...here, account: "a2" } }
  const changed: Told = { ...after, tools: ["ant", "lion"] }
  const rows: ReadonlyArray<
    readonly [
      title: string,
      next: Told,
      threads: ReadonlyArray<Thread>,
      given: Parameters<typeof expected>[2],
      usage: ReportedPrompt,
      result: string,
      told: object
    ]
  > = [
    ["a hit has none", after, [thread], {}, usage(150, 80), "hit", {}],
    ["what nobody expected is a hit too", before, [], {}, usage(100, 50), "hit", {}],
    ["a new thread comes before all others", after, [], late, usage(150, 0, false), "none", { reason: "first_turn" }],
    ["a server without a count", after, [thread], elsewhere, usage(150, 0, false), "none", { reason: "not_reported" }],
    ["a small prompt", after, [thread], { least: 1_024, ...elsewhere }, usage(150, 0), "none", { reason: "too_small" }],
    ["another account", changed, [thread], { ...elsewhere, ...late }, usage(150, 0), "none", {
      reason: "moved",
      because: "full"
    }],
    [
      "another target",
      after,
      [thread],
      { answerer: { ...here, model: "n" }, because: "target" },
      usage(150, 0),
      "none",
      {
        reason: "moved",
        because: "target"
      }
    ],
    ["time that has passed", changed, [thread], late, usage(150, 0), "none", { reason: "expired", age: 302 }],
    ["an earlier element that differs", changed, [thread], {}, usage(150, 0), "miss", {
      reason: "changed",
      at: "tools[1]"
    }],
    ["a server that let it go", after, [thread], {}, usage(150, 0), "miss", { reason: "not_kept" }],
    ["a server that let a part of it go", after, [thread], {}, usage(150, 79), "partial", { reason: "not_kept" }]
  ]

  it.each(rows)("%s", (_, next, threads, given, reported, result, told) => {
    const expectation = expected(next, threads, given)
    const judged = judgeCache(expectation, reported, given?.least ?? 1)
    const { age, at, because, reason, ...counts } = judged
    assert.deepStrictEqual(
      counts,
      {
        prompt: reported.promptTokens,
        read: reported.cachedTokens,
        written: 5,
        predicted: expectation.predicted,
        result
      } as typeof counts
    )
    assert.deepStrictEqual({ age, at, because, reason }, {
      age: undefined,
      at: undefined,
      because: undefined,
      reason: undefined,
      ...told
    })
  })

  it("predicts nothing at another account, and after the lifetime", () => {
    assert.strictEqual(expected(after, [thread]).predicted, 100)
    for (const given of [elsewhere, late]) {
      assert.strictEqual(expected(after, [thread], given).predicted, 0)
    }
  })
})
