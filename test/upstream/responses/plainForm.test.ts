/** The plain form of requests, for generated conversations. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { plainForm } from "../../../src/contracts/responses/plainForm.ts"
import type { Json, JsonFields } from "../../../src/domain/json.ts"
import { collectSeals } from "../../../src/domain/makers.ts"
import { runs, seed } from "../../support/effort.ts"
import { valuesOf } from "../../support/strictResponses.ts"

const words = fc.string({ minLength: 1, maxLength: 8 }).map((text) => `w-${text}`)
const id = (kind: string) => fc.nat({ max: 99 }).map((n) => `${kind}_${n}`)
const seal = fc.tuple(fc.constantFrom("own", "far"), fc.nat({ max: 99 })).map(([maker, n]) => `${maker}-seal-${n}`)
const maybe = <A>(field: string, value: fc.Arbitrary<A>) =>
  fc.option(value, { nil: undefined }).map((value) => value === undefined ? {} : { [field]: value })

const merged = (...parts: ReadonlyArray<fc.Arbitrary<object>>): fc.Arbitrary<JsonFields> =>
  fc.tuple(...parts).map((each) => Object.assign({}, ...each) as JsonFields)

const item: fc.Arbitrary<Json> = fc.oneof(
  words,
  merged(words.map((content) => ({ role: "user", content })), maybe("id", id("msg"))),
  merged(
    words.map((text) => ({ type: "message", role: "assistant", content: [{ type: "output_text", text }] })),
    maybe("id", id("msg"))
  ),
  merged(
    fc.constant({ type: "reasoning", summary: [] }),
    id("rs").map((id) => ({ id })),
    maybe("encrypted_content", seal),
    maybe("content", words.map((text) => [{ type: "reasoning_text", text }]))
  ),
  merged(words.map((name) => ({ type: "function_call", call_id: "c", name, arguments: "{}" })), maybe("id", id("fc"))),
  merged(words.map((output) => ({ type: "function_call_output", call_id: "c", output })), maybe("id", id("fco"))),
  merged(words.map((query) => ({ type: "web_search_call", queries: [query] })), id("ws").map((id) => ({ id }))),
  merged(
    words.map((name) => ({ type: "mcp_approval_request", name, arguments: "{}", server_label: "s" })),
    id("mcpr").map((id) => ({ id }))
  ),
  id("mcpr").map((approval_request_id) => ({ type: "mcp_approval_response", approval_request_id, approve: true })),
  merged(
    fc.constant({ type: "compaction" }),
    maybe("id", id("cmp")),
    seal.map((encrypted_content) => ({ encrypted_content }))
  ),
  fc.tuple(fc.option(words), fc.option(seal)).map(([text, seal]) => ({
    type: "agent_message",
    content: [
      ...(text === null ? [] : [{ type: "input_text", text }]),
      ...(seal === null ? [] : [{ type: "encrypted_content", encrypted_content: seal }])
    ]
  }))
)

const request = fc.record({ model: fc.constant("m"), input: fc.array(item, { maxLength: 12 }) })

const holds = (test: (fields: JsonFields) => void) =>
  fc.assert(fc.property(request, (fields) => test(fields as JsonFields)), { numRuns: runs(500), seed })

const inputOf = ({ input }: JsonFields): ReadonlyArray<Json> => input as ReadonlyArray<Json>

const sealsIn = (fields: JsonFields): ReadonlyArray<string> => {
  const seals: Array<string> = []
  for (const item of inputOf(fields)) collectSeals(item, seals)
  return seals
}

const wordsIn = (value: unknown): ReadonlyArray<string> =>
  typeof value === "string"
    ? value.startsWith("w-") ? [value] : []
    : typeof value === "object" && value !== null
    ? Object.values(value).flatMap(wordsIn)
    : []

const withoutThinking = (items: ReadonlyArray<Json>): ReadonlyArray<Json> =>
  items.filter((item) => (item as JsonFields)["type"] !== "reasoning")

const isFar = (seal: string) => seal.startsWith("far")

describe("the plain form", () => {
  it("has no seal and no id of the conversation, and all of its words, calls and results in their order", () => {
    holds((fields) => {
      const plain = plainForm(fields, { readsThinking: false, isForeign: undefined })?.fields ?? fields
      assert.deepStrictEqual(valuesOf("encrypted_content", plain), [])
      const ids = new Set(valuesOf("id", fields))
      assert.deepStrictEqual(valuesOf("id", plain).filter((id) => ids.has(id)), [])
      assert.deepStrictEqual(wordsIn(inputOf(plain)), wordsIn(withoutThinking(inputOf(fields))))
    })
  })

  it("names each seal once, by its place", () => {
    holds((fields) => {
      const { left } = plainForm(fields, { readsThinking: true, isForeign: undefined }) ?? { left: [] }
      const paths = left.map(({ index, path }) => `${index}${path}`).filter((path) =>
        path.endsWith("encrypted_content")
      )
      assert.strictEqual(new Set(paths).size, paths.length)
      assert.strictEqual(paths.length, sealsIn(fields).length)
      assert.strictEqual(valuesOf("encrypted_content", fields).length, paths.length)
    })
  })

  it("keeps thinking that has words for a server that reads it", () => {
    holds((fields) => {
      const plain = plainForm(fields, { readsThinking: true, isForeign: undefined })?.fields ?? fields
      assert.deepStrictEqual(wordsIn(inputOf(plain)), wordsIn(inputOf(fields)))
    })
  })

  it("says which approval belongs to which request", () => {
    holds((fields) => {
      const idOf = (items: ReadonlyArray<Json>, type: string, field: string) =>
        items.flatMap((item) => (item as JsonFields)["type"] === type ? [(item as JsonFields)[field]] : [])
      const pairs = (items: ReadonlyArray<Json>) => {
        const requests = idOf(items, "mcp_approval_request", "id")
        return idOf(items, "mcp_approval_response", "approval_request_id").map((id) => requests.indexOf(id))
      }
      const plain = plainForm(fields, { readsThinking: false, isForeign: undefined })?.fields ?? fields
      assert.deepStrictEqual(pairs(inputOf(plain)), pairs(inputOf(fields)))
    })
  })

  it("keeps the seals that can be opened, with the items that follow them", () => {
    holds((fields) => {
      const plain = plainForm(fields, { readsThinking: false, isForeign: isFar })?.fields ?? fields
      const own = sealsIn(fields).filter((seal) => !isFar(seal))
      assert.deepStrictEqual(sealsIn(plain), own)
      let follows = false
      const kept = inputOf(fields).filter((item) => {
        const { encrypted_content: seal, role } = item as JsonFields
        if (role === "user") follows = false
        if (typeof seal === "string") follows = !isFar(seal)
        return follows
      })
      const isWhole = (item: Json) => valuesOf("encrypted_content", item).every((seal) => !isFar(String(seal)))
      const found = new Set(inputOf(plain).map((item) => JSON.stringify(item)))
      for (const item of kept.filter(isWhole)) assert.isTrue(found.has(JSON.stringify(item)), JSON.stringify(item))
    })
  })

  it("does not exist where nothing has to go", () => {
    holds((fields) => {
      const again = plainForm(plainForm(fields, { readsThinking: false, isForeign: undefined })?.fields ?? fields, {
        readsThinking: false,
        isForeign: undefined
      })
      assert.deepStrictEqual(again?.left ?? [], [])
    })
    assert.isUndefined(plainForm({ input: "Hi" }, { readsThinking: false, isForeign: undefined }))
    assert.isUndefined(
      plainForm({ input: [{ role: "user", content: "Hi" }] }, { readsThinking: false, isForeign: undefined })
    )
  })

  it("has no response that it continues", () => {
    assert.deepStrictEqual(
      plainForm({ input: "Hi", previous_response_id: "r" }, { readsThinking: false, isForeign: undefined }),
      {
        fields: { input: "Hi" },
        left: []
      }
    )
  })
})
