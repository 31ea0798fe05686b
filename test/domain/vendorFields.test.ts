/** The walk through a body by its family's table: what drivers of the family send of it, and what others report. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import {
  type Family,
  ignorable,
  listOf,
  local,
  object,
  objectBy,
  reported,
  required,
  supported,
  translated
} from "../../src/contracts/shared/Family.ts"
import { Faults } from "../../src/contracts/shared/Faults.ts"
import { restOf } from "../../src/contracts/shared/restOf.ts"
import { runSync, sliceItems } from "../../src/domain/stream/cooperative.ts"

const no = reported("Unknown to others.")
const mark = ignorable("Changes nothing.")

const source = objectBy("type", {
  url: object({ type: supported, url: supported, region: no }),
  file: required("the upstream reads no files")
})

const part = objectBy("type", {
  text: object({ type: supported, text: supported, mark, citations: no }),
  picture: object({ type: supported, source, sizes: object({ width: supported, dpi: no }) }),
  result: object({ type: supported, content: listOf(object({ text: supported, mark })) }),
  search: translated("Its words stay.")
})

const family: Family = {
  name: "toy",
  vendor: "messages",
  open: true,
  spelling: (name) => name === "Messages" ? "messages" : name,
  fields: new Map(Object.entries({
    messages: listOf(object({ role: supported, content: listOf(part), weight: no })),
    input: listOf(part, { isAlone: true }),
    system: listOf(object({ text: supported, mark }), {
      form: (value) => typeof value === "string" ? { text: value } : value
    }),
    tools: listOf(object({ name: supported, schema: supported })),
    choice: objectBy("type", { any: object({ type: supported, most: no }) }),
    own: local(no),
    editing: no,
    speed: reported("Unknown to others.", "standard"),
    cached: required("the upstream keeps nothing"),
    labels: mark
  }))
}

const rest = (body: object) => runSync(restOf(family, body))

const said = (body: object) => rest(body).bodyVendorFields

/** What a driver of another family reports. */
const reportedIn = (body: object): ReadonlyArray<string> => said(body)?.unsent().paths ?? []

describe("the bodyVendorFields of a body", () => {
  it("are absent from a body that says what the gateway models", () => {
    const body = {
      messages: [
        { role: "user", content: "Hi" },
        { role: "user", content: [{ type: "text", text: "Hi", citations: [], mark: null }] }
      ],
      tools: [{ name: "f", schema: { mark: 1 } }]
    }
    assert.deepStrictEqual(rest(body), {
      serverFields: undefined,
      bodyVendorFields: undefined,
      ignored: [],
      more: 0,
      refused: undefined
    })
  })

  it("have the fields of one element, by its path", () => {
    const body = {
      Messages: [
        {
          role: "user",
          weight: 2,
          content: [{ type: "text" }, { type: "text", text: "Hi", mark: 1, citations: { a: 1 } }]
        }
      ],
      tools: [{ name: "f" }, { name: "g", later: true }]
    }
    const bodyVendorFields = said(body)!
    assert.deepStrictEqual(bodyVendorFields.attach("messages[0]"), { vendor: "messages", fields: { weight: 2 } })
    assert.deepStrictEqual(bodyVendorFields.attach("messages[0].content[1]"), {
      vendor: "messages",
      fields: { mark: 1, citations: { a: 1 } }
    })
    assert.deepStrictEqual(bodyVendorFields.attach("tools[1]"), { vendor: "messages", fields: { later: true } })
    assert.isUndefined(bodyVendorFields.attach("messages[0].content[0]"))
    assert.deepStrictEqual(bodyVendorFields.unsent().paths, [
      "messages[0].weight",
      "messages[0].content[1].citations",
      "tools[1].later"
    ])
  })

  it("keep the objects that fields are in", () => {
    const body = { input: { type: "picture", source: { type: "url", region: "eu" }, sizes: { width: 1, dpi: 2 } } }
    assert.deepStrictEqual(said(body)?.attach("input")?.fields, { source: { region: "eu" }, sizes: { dpi: 2 } })
    assert.deepStrictEqual(reportedIn(body), ["input.source.region", "input.sizes.dpi"])
  })

  it("have an element of another kind as a whole", () => {
    const strange = { type: "hologram", text: "Hi" }
    const bodyVendorFields = said({ messages: [{ role: "user", content: [strange] }] })!
    assert.deepStrictEqual(bodyVendorFields.attach("messages[0].content[0]"), {
      vendor: "messages",
      fields: strange,
      wholeElement: true
    })
    assert.deepStrictEqual(bodyVendorFields.unsent().paths, ["messages[0].content[0]"])
  })

  it("have an element as a whole if an object within it is of another kind", () => {
    const strange = { type: "picture", source: { type: "cloud", id: 1 }, sizes: { dpi: 2 } }
    const bodyVendorFields = said({ messages: [{ content: [strange] }] })!
    assert.deepStrictEqual(bodyVendorFields.attach("messages[0].content[0]"), {
      vendor: "messages",
      fields: strange,
      wholeElement: true
    })
    assert.deepStrictEqual(bodyVendorFields.unsent().paths, ["messages[0].content[0].source"])
  })

  it("report an element that the gateway translates only if its decoder says so", () => {
    const body = { input: [{ type: "search", query: "x" }, { type: "search" }] }
    assert.deepStrictEqual(reportedIn(body), [])
    const bodyVendorFields = said(body)!
    const faults = new Faults(bodyVendorFields)
    faults.noteIgnored("input[1]")
    faults.noteIgnored("input[2]")
    assert.deepStrictEqual(faults.ignored, ["input[2]"])
    assert.deepStrictEqual(bodyVendorFields.unsent().paths, ["input[1]"])
  })

  it("of the top level include objects of another kind, and fields of the server", () => {
    const { bodyVendorFields, serverFields } = rest({
      choice: { type: "new" },
      min_p: 1,
      editing: { a: 1 },
      labels: {},
      own: 1
    })
    assert.deepStrictEqual(bodyVendorFields?.attach("")?.fields, {
      choice: { type: "new" },
      min_p: 1,
      editing: { a: 1 },
      labels: {}
    })
    assert.deepStrictEqual(bodyVendorFields?.unsent().paths, ["choice", "editing"])
    assert.deepStrictEqual(serverFields, { min_p: 1 })
  })

  it("read a single value in the place of a list, and other forms", () => {
    assert.deepStrictEqual(reportedIn({ messages: { weight: 1 } }), ["messages[0].weight"])
    assert.deepStrictEqual(reportedIn({ input: { type: "text", citations: 1 } }), ["input.citations"])
    assert.deepStrictEqual(reportedIn({ input: [{ type: "text", citations: 1 }] }), ["input[0].citations"])
    assert.isUndefined(said({ system: "Hi" }))
  })

  it("are not reported by a driver of the family, as far as the conversation has them and the driver sends them", () => {
    const bodyVendorFields = said({ editing: 1, tools: [{ name: "f", later: true }] })!
    const sends = () => true
    bodyVendorFields.attach("")
    assert.deepStrictEqual(bodyVendorFields.unsent(sends).paths, ["tools[0].later"])
    bodyVendorFields.attach("tools[0]")
    assert.deepStrictEqual(bodyVendorFields.unsent(sends).paths, [])
    assert.deepStrictEqual(bodyVendorFields.unsent((name) => name !== "editing").paths, ["editing"])
  })

  it("refuse what the reply depends on, where it is not sent", () => {
    const bodyVendorFields = said({ cached: "x" })!
    bodyVendorFields.attach("")
    assert.strictEqual(bodyVendorFields.unsent().refused?.message, "cached: the upstream keeps nothing")
    assert.isUndefined(bodyVendorFields.unsent(() => true).refused)
    const nested = said({ input: [{ type: "picture", source: { type: "file", id: "f" } }] })
    assert.strictEqual(nested?.unsent().refused?.param, "input[0].source")
  })

  it("report no values that ask for nothing, but have them", () => {
    const bodyVendorFields = said({ speed: "standard" })
    assert.deepStrictEqual(bodyVendorFields?.attach("")?.fields, { speed: "standard" })
    assert.deepStrictEqual(bodyVendorFields?.unsent().paths, [])
  })

  it("name a hundred paths and count the others", () => {
    const { more, paths } = said({ tools: Array.from({ length: 250 }, () => ({ later: true })) })!.unsent()
    assert.deepStrictEqual([paths.length, more], [100, 150])
  })

  it("have no field by the name of the prototype", () => {
    const body: object = JSON.parse(`{"tools":[{"__proto__":{"later":1}}]}`)
    assert.deepStrictEqual([rest(body).bodyVendorFields, rest(body).ignored], [undefined, ["tools[0].__proto__"]])
  })

  it("are found in slices, in any body", () => {
    for (const { items } of restOf(family, { messages: Array.from({ length: 9_000 }, () => ({ content: [{}] })) })) {
      assert.isAtMost(items, sliceItems)
    }
    fc.assert(fc.property(fc.json(), (json) => {
      for (const field of ["messages", "input", "system", "choice"]) rest({ [field]: JSON.parse(json) as unknown })
    }))
  })
})
