/** What strict limits reserve: no bill of a request within its bounds is higher. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { boundsOf, withLimit } from "../../src/completion/bounds.ts"
import type { ServedInput } from "../../src/completion/CompletionInput.ts"
import type { GatewayConfig } from "../../src/config/GatewayConfig.ts"
import { costOf, dearestCost } from "../../src/domain/bill.ts"
import { type Conversation, noSampling, plainConversation, Text } from "../../src/domain/Conversation.ts"
import { GatewayError } from "../../src/domain/GatewayError.ts"
import type { Price } from "../../src/domain/prices.ts"
import { plainTarget, type Target } from "../../src/domain/routes.ts"
import type { Driver } from "../../src/upstream/Upstream.ts"
import { runs } from "../support/effort.ts"

const amount = fc.bigInt({ min: 0n, max: 10n ** 12n })
const price = fc.record({
  input: amount,
  output: amount,
  cache_write: fc.option(amount, { nil: undefined }),
  cache_write_1h: fc.option(amount, { nil: undefined }),
  reasoning: fc.option(amount, { nil: undefined }),
  "per_tool_call.search": amount,
  "per_tool_call.fetch": amount,
  per_request: amount
}).map((units): Price => ({
  listed: undefined,
  units: new Map(Object.entries(units).flatMap(([unit, value]) => value === undefined ? [] : [[unit, value]])),
  above: [],
  tiers: new Map([["priority", { units: new Map([["output", 3n * 10n ** 12n]]), above: [] }]]),
  factors: new Map([["speed", new Map([["fast", 6n * 10n ** 9n]])]])
}))
const count = fc.nat({ max: 1_000_000 })

describe("the dearest cost", () => {
  it("is at least the bill of every use within the bounds", () => {
    fc.assert(
      fc.property(
        price,
        fc.record({ prompt: count, output: count, calls: fc.nat({ max: 9 }) }),
        fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 6, maxLength: 6 }),
        fc.boolean(),
        (price, { calls, output, prompt }, shares, isAsked) => {
          const [some, written, hour, made, thought, searched] = shares as [
            number,
            number,
            number,
            number,
            number,
            number
          ]
          const part = (whole: number, share: number) => Math.floor(whole * share)
          const promptTokens = part(prompt, some)
          const cacheWriteTokens = part(promptTokens, written)
          const completionTokens = part(output, made)
          const search = part(calls, searched)
          const words = isAsked ? { speed: "fast" } : undefined
          const tier = isAsked ? "priority" : undefined
          const cost = costOf(price, {
            promptTokens,
            cachedTokens: 0,
            cacheWriteTokens,
            completionTokens,
            reasoningTokens: part(completionTokens, thought),
            details: {
              cacheWrite1hTokens: part(cacheWriteTokens, hour),
              toolCalls: { search, fetch: calls - search },
              tier,
              words
            }
          })
          const tools = [{ names: ["search", "fetch"], calls }]
          assert.isTrue(
            cost <=
              dearestCost(price, {
                promptTokens: prompt,
                completionTokens: output,
                tools,
                tier,
                words,
                pieces: undefined
              })
          )
        }
      ),
      { numRuns: runs(200) }
    )
  })
})

const conversation = (fields: Partial<Conversation> = {}): Conversation => ({
  ...plainConversation,
  turns: [{ role: "user", parts: [Text("Hi")] }],
  ...fields
})

const model = { id: "m", reasoning: "auto", search: false } as const
const target: Target = { ...plainTarget, upstream: "up", model, enabled: true }
const entry = { ...model, model: "m" }
const configOf = (max_tokens?: number) =>
  ({
    upstreams: new Map([["up", { models: [max_tokens === undefined ? entry : { ...entry, max_tokens }] }]])
  }) as unknown as GatewayConfig

const driver = (contract: Driver["contract"]) =>
  ({ name: "d", contract, capabilities: {}, sends: { sampling: () => true, leastOutput: 16 } }) as unknown as Driver

/** The bounds of a conversation at one target, or the field of the error. */
const boundOf = (
  asked: Conversation,
  { family = "openai" as Driver["contract"], max_tokens, replies }: {
    readonly family?: Driver["contract"]
    readonly max_tokens?: number
    readonly replies?: number
  } = {}
) => {
  const request = { style: "responses", outputs: {} } as ServedInput["request"]
  const input = {
    conversation: asked,
    config: configOf(max_tokens),
    request,
    ...replies === undefined ? {} : { replies }
  }
  const found = boundsOf(input as ServedInput, { id: "m", targets: [target] }, 100, () => driver(family), 0)
  if (found instanceof GatewayError) return found.param
  const [{ most: { completionTokens, promptTokens, tools }, tries }] = found as [(typeof found)[number]]
  return { completionTokens, promptTokens, tools, tries }
}

const whole = (fields: Conversation["serverFields"]): Partial<Conversation> => ({
  vendorFields: { vendor: "responses", wholeElement: true, fields: fields ?? {} }
})

describe("the bounds of a completion", () => {
  it("are the prompt with a margin and the limit of output, of the request or else of the entry", () => {
    const plain = { promptTokens: 125, tools: [], tries: 1 }
    assert.strictEqual(boundOf(conversation()), "max_output_tokens")
    assert.deepStrictEqual(boundOf(conversation(), { max_tokens: 50 }), { ...plain, completionTokens: 50 })
    const limited = conversation({ sampling: { ...noSampling, maxTokens: 70 } })
    assert.deepStrictEqual(boundOf(limited, { max_tokens: 50 }), { ...plain, completionTokens: 70 })
    const small = conversation({ sampling: { ...noSampling, maxTokens: 1 } })
    assert.deepStrictEqual(boundOf(small), { ...plain, completionTokens: 16 })
  })

  it("are two tries where the gateway may ask twice", () => {
    const sampling = { ...noSampling, maxTokens: 10_000 }
    const demanded = conversation({ sampling, tools: [{ name: "f" }], toolChoice: { _tag: "Required" } })
    const found = boundOf(demanded)
    assert(typeof found === "object" && found !== null)
    assert.strictEqual(found.tries, 2)
    assert.isAbove(found.promptTokens, 125)
    assert.deepInclude(boundOf(conversation({ sampling }), { replies: 2 }), { tries: 2, completionTokens: 10_000 })
    assert.deepInclude(boundOf(conversation({ sampling: { ...noSampling, maxTokens: 20 } }), { replies: 2 }), {
      completionTokens: 8_192
    })
  })

  it("need a number of calls for the tools that the vendor runs, and none for the caller's", () => {
    const sampling = { ...noSampling, maxTokens: 20 }
    const tools = [{ type: "function", name: "f" }, { type: "shell" }, { type: "web_search_preview" }]
    const family = "responses"
    const asked = (fields: Conversation["serverFields"]) => conversation({ sampling, ...whole(fields) })
    assert.strictEqual(boundOf(asked({ tools }), { family }), "max_tool_calls")
    assert.deepInclude(boundOf(asked({ tools, max_tool_calls: 3 }), { family }), {
      tools: [{ names: ["web_search"], calls: 3 }]
    })
    assert.deepInclude(boundOf(asked({ tools: tools.slice(0, 2) }), { family }), { tools: [] })
    assert.deepInclude(boundOf(asked({ tools }), { family: "openai" }), { tools: [] })
    const google = { index: 1, vendorFields: { vendor: "generate" as const, fields: { googleSearch: {} } } }
    assert.strictEqual(boundOf(conversation({ sampling, vendorTools: [google] }), { family: "generate" }), "tools[1]")
  })

  it("are sent: a server of the caller's contract gets the entry's limit in its own field", () => {
    const limited = withLimit(conversation(whole({ input: "Hi" })), configOf(50), target)
    assert.strictEqual(limited.sampling.maxTokens, 50)
    assert.deepStrictEqual(limited.vendorFields?.fields, { input: "Hi", max_output_tokens: 50 })
    const own = conversation({ sampling: { ...noSampling, maxTokens: 20 } })
    assert.strictEqual(withLimit(own, configOf(50), target), own)
  })
})
