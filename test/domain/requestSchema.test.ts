/** The Schema of a request is the one description of its fields: a field that is added there is known wherever fields are. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import { fidelityTable } from "../../scripts/docs/fidelity.ts"
import { ChatRequest } from "../../src/contracts/chat/schema.ts"
import { ignorable, reported } from "../../src/contracts/shared/Family.ts"
import { familyOf, request } from "../../src/contracts/shared/requestSchema.ts"
import { restOf } from "../../src/contracts/shared/restOf.ts"
import { optional, ParsedObject } from "../../src/domain/schemas.ts"
import { runSync } from "../../src/domain/stream/cooperative.ts"
import { jsonRequest } from "../../src/http/jsonBody.ts"
import { smallBody } from "../../src/http/receiveBody.ts"

const facts = { name: "chat with a mood", vendor: "openai", open: true } as const

/** The chat style with one more field, which is added to its Schema and nowhere else. */
const Mood = Schema.Struct({ tone: Schema.String, notes: optional(Schema.Array(ParsedObject)) })
  .annotate(
    request({ fields: { color: reported("Replies have no color."), pulse: ignorable("Nothing depends on it.") } })
  )

const MoodyRequest = Schema.Struct({
  ...ChatRequest.fields,
  mood: optional(Mood),
  habits: optional(Schema.Array(Schema.String)).annotate(request({ counted: "turns" }))
})

const family = familyOf(MoodyRequest, facts)
const read = jsonRequest(MoodyRequest, { family })

const plain = { model: "m", messages: [{ role: "user", content: "Hello" }] }

const readBody = (body: object) =>
  read(HttpServerRequest.fromWeb(new Request("http://localhost/", { method: "POST", body: JSON.stringify(body) })))
    .pipe(
      Effect.map(({ body }) => body),
      Effect.scoped
    )

describe("a field that is added to the Schema of a request", () => {
  it.effect("is decoded, also within a body that is decoded in slices", () =>
    Effect.gen(function*() {
      const mood = { tone: "calm", notes: [{ any: { thing: 1 } }] }
      const small = yield* readBody({ ...plain, mood })
      assert.deepStrictEqual(small.mood, mood)
      const long = "a".repeat(smallBody)
      const large = yield* readBody({ ...plain, messages: [{ role: "user", content: long }], mood })
      assert.deepStrictEqual(large.mood, mood)
    }))

  it.effect("is named by the error of a wrong value", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(readBody({ ...plain, mood: { tone: 5 } }))
      assert.strictEqual(error.param, "mood.tone")
    }))

  it.effect("counts against the limits as its annotation says", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(readBody({ ...plain, habits: Array.from({ length: 100_000 }, () => "") }))
      assert.strictEqual(error.param, "habits")
    }))

  it("is read, and the vendor's fields within it are sent or reported as its annotation says", () => {
    const { ignored, bodyVendorFields } = runSync(
      restOf(family, { ...plain, mood: { tone: "calm", color: "blue", pulse: 80, odd: 1 } })
    )
    assert.deepStrictEqual(ignored, [])
    assert.deepStrictEqual(bodyVendorFields?.unsent().paths, ["mood.color", "mood.odd"])
    assert.deepStrictEqual(bodyVendorFields?.attach("")?.fields, { mood: { color: "blue", pulse: 80, odd: 1 } })
  })

  it("is in the table of the documents", () => {
    const rows = fidelityTable(family).split("\n")
    assert.includeMembers(rows, [
      "| `mood` | supported |  |",
      "| `mood.tone` | supported |  |",
      "| `mood.color` | reported | Replies have no color. |",
      "| `mood.pulse` | ignorable | Nothing depends on it. |"
    ])
  })
})

const variants = (schema: Schema.Constraint) => familyOf(Schema.Struct({ value: schema }), facts).fields.get("value")!

describe("the table of a Schema", () => {
  const a = Schema.Struct({ type: Schema.Literal("a"), x: Schema.String })
  const b = Schema.Struct({ type: Schema.Literals(["b", "c"]), y: Schema.String })

  it("has the kinds of a union by the field that names them", () => {
    const { kinds } = variants(Schema.Union([a, b]))
    assert.deepStrictEqual([...kinds!.rows.keys()], ["a", "b", "c"])
    assert.deepStrictEqual([...kinds!.rows.get("c")!.fields!.keys()], ["type", "y"])
  })

  it("has the elements of a list that stands in a union with a text", () => {
    const row = variants(optional(Schema.Union([Schema.String, Schema.Array(a)])))
    assert.deepStrictEqual([...row.items!.fields!.keys()], ["type", "x"])
  })

  it("looks into no JSON of the caller's own", () => {
    assert.isTrue(variants(optional(ParsedObject)).isOpaque)
    assert.isTrue(variants(Schema.Unknown).isOpaque)
  })
})
