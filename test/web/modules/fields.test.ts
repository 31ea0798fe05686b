/**
 * Fields of the console's forms as texts: settings, and the entries of keys, upstreams, routes and prices.
 */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { entryFields } from "../../../src/admin/settings/fields.ts"
import {
  changesOf,
  configuredTexts,
  decimal,
  type Entry,
  faultOf,
  faultyLines,
  fieldAt,
  type FormField,
  patchOf,
  type Setting,
  textIn,
  textsOf,
  valueOf,
  wholeNumber
} from "../../../src/web/forms/fields.ts"
import { entryOf, formFields, payloadOf } from "../../../src/web/pages/keys/draft.ts"
import type { KeyItem } from "../../../src/web/pages/keys/keys.ts"
import { compact } from "../../../src/web/pages/routes/choice.ts"
import { codecs, namesIn, needsTest, withModel } from "../../../src/web/pages/upstreams/draft.ts"
import type { Route } from "../../../src/web/state/upstreams.ts"

const field = (path: string, type: Setting["type"], configured: Setting["configured"] = null): Setting => ({
  path,
  type,
  minimum: null,
  maximum: null,
  choices: null,
  default: null,
  configured,
  effective: configured,
  writable: true,
  description: ""
})

describe("settings as texts in the console", () => {
  it("a text gives back the value that it was made from", () => {
    fc.assert(fc.property(
      fc.oneof(
        fc.integer().map((value) => field("a.b", "integer", value)),
        fc.double({ noNaN: true, noDefaultInfinity: true }).filter((value) => !Object.is(value, -0))
          .map((value) => field("a.b", "number", value)),
        fc.boolean().map((value) => field("a.b", "boolean", value)),
        fc.stringMatching(/^[\w.]+$/).map((value) => field("a.b", "lines", `${value}\n${value}`)),
        fc.array(fc.stringMatching(/^\S+$/), { minLength: 1 }).map((value) => field("a.b", "list", value)),
        fc.integer({ min: 0, max: 2 ** 27 }).map((minutes) =>
          field("a.b", "time", new Date(minutes * 1_000 * 60).toISOString())
        ),
        fc.stringMatching(/^\S+$/).map((value) => field("a.b", "text", value)),
        fc.dictionary(fc.stringMatching(/^[\w.-]+$/), fc.stringMatching(/^[\w.=-]+$/), { minKeys: 1 })
          .map((value) => field("a", "map", { ...value }))
      ),
      (each) => {
        const text = textIn(each, each.configured)
        assert.deepStrictEqual(valueOf(each, text), each.configured)
        assert.deepStrictEqual(changesOf([each], configuredTexts([each]), new Map([[each.path, ` ${text}\n`]])), [])
      }
    ))
  })

  it("a patch contains only changed values; an empty text unsets", () => {
    const fields = [
      field("a.b", "integer", 1),
      field("a.c", "integer", 2),
      field("m", "map"),
      field("d", "boolean", true)
    ]
    const drafts = new Map([["a.b", "1"], ["a.c", ""], ["m", "x = y"], ["d", "false"]])
    const changes = changesOf(fields, configuredTexts(fields), drafts)
    assert.deepStrictEqual(patchOf(changes, drafts), { a: { c: null }, m: { x: "y" }, d: false })
  })

  it("a text that is not of the field's type is sent unchanged", () => {
    assert.strictEqual(valueOf(field("a", "integer"), "many"), "many")
    assert.deepStrictEqual(faultyLines("a = b\n\nc\n= d\ne ="), [3, 4, 5])
    assert.strictEqual(fieldAt([field("m", "map"), field("mm", "map")], "m.some.alias")?.path, "m")
  })
})

/** What a form sends after these texts were typed. */
const sent = (fields: ReadonlyArray<FormField>, entry: Entry, typed: Readonly<Record<string, string>>): Entry => {
  const before = textsOf(fields, entry)
  const now = new Map([...before, ...Object.entries(typed)])
  return payloadOf(patchOf(changesOf(fields, before, now), now), patchOf(fields, now))
}

const item: KeyItem = {
  id: "0123456789abcdef",
  preview: "sk-gw-ab...",
  state: "active",
  name: "team a",
  label: null,
  note: null,
  disabled: false,
  expires_at: "2030-01-01T10:20:30Z",
  models: ["upstream-chat"],
  max_inflight: 4,
  class: null,
  limits: [{
    window: "week",
    requests: null,
    tokens: 5,
    strict: true,
    fallback: "cheap"
  }, { window: "day", requests: 7, tokens: null, strict: false, fallback: null }],
  created_at: null,
  usage: { in_flight: 0, max_inflight: 4, last_used_at: null, requests_today: 0, cost_today: "0", windows: [] }
}

describe("the console's form of a key", () => {
  const fields = formFields(entryFields().keys)
  const changes = (typed: Readonly<Record<string, string>>) => sent(fields, entryOf(item), typed)

  it("sends only the edited fields", () => {
    assert.deepStrictEqual(changes({}), {})
    const edits: ReadonlyArray<readonly [field: string, typed: Readonly<Record<string, string>>]> = [
      ["name", { name: " team b " }],
      ["note", { note: "ours" }],
      ["disabled", { disabled: "true" }],
      ["expires_at", { expires_at: "2031-02-03T04:05" }],
      ["models", { models: "a\n\n b " }],
      ["max_inflight", { max_inflight: "1,000" }],
      ["limits", { "limits.day.requests": "1" }]
    ]
    for (const [name, typed] of edits) assert.deepStrictEqual(Object.keys(changes(typed)), [name])
    assert.deepStrictEqual(changes({ models: "a\n\n b ", name: " team b ", max_inflight: "1,000" }), {
      name: "team b",
      models: ["a", "b"],
      max_inflight: 1000
    })
  })

  it("sends nothing without an edit, whatever the expiry", () => {
    const times = fc.date({ min: new Date(0), max: new Date("9999-01-01T00:00:00Z"), noInvalidDate: true })
    fc.assert(fc.property(times, (time) => {
      const entry = entryOf({ ...item, expires_at: time.toISOString() })
      assert.deepStrictEqual(sent(fields, entry, { expires_at: textsOf(fields, entry).get("expires_at")! }), {})
    }))
  })

  it("clears the value of an emptied field, and sends the limits as a whole", () => {
    const emptied = { "limits.week.tokens": "", "limits.day.requests": "" }
    assert.deepStrictEqual(changes({ name: "", expires_at: "", models: "\n", max_inflight: "", ...emptied }), {
      name: null,
      expires_at: null,
      models: null,
      max_inflight: null,
      limits: []
    })
    assert.deepStrictEqual(changes({ "limits.day.requests": "", "limits.week.cost": "1,250.50" })["limits"], [
      { window: "week", requests: null, tokens: 5, cost: "1250.50", strict: true, fallback: "cheap" }
    ])
  })

  it("refuses what is not in the range of its field", () => {
    const faults = (path: string, text: string) => faultOf(fields.find((each) => each.path === path)!, text)
    assert.strictEqual(faults("max_inflight", "200,001"), "range")
    assert.strictEqual(faults("limits.day.requests", "0"), "range")
    assert.strictEqual(faults("limits.day.tokens", "many"), "number")
    assert.isUndefined(faults("max_inflight", "200,000"))
  })
})

describe("numbers in the console's forms", () => {
  it("are read with separators of thousands as people write them", () => {
    for (const locale of ["en-GB", "de-DE", "fr-FR", "de-CH", "zh-CN"]) {
      fc.assert(fc.property(fc.nat(), (value) => {
        assert.strictEqual(wholeNumber(` ${value.toLocaleString(locale)} `), value)
        assert.strictEqual(wholeNumber(String(value)), value)
      }))
    }
    for (const text of [" ", "1.5", "1,50", "-1", "a", "1e3", "12,3456"]) assert.isUndefined(wholeNumber(text), text)
  })

  it("amounts are decimal numbers with at most nine places, which keep their digits", () => {
    assert.strictEqual(decimal("1,250.50"), "1250.50")
    assert.strictEqual(decimal("0.000000001"), "0.000000001")
    for (const text of ["", "1,5", "-1", "1.0000000001", "USD 5"]) assert.isUndefined(decimal(text), text)
    const [input] = entryFields().prices
    assert.deepStrictEqual(["0.5", "1.50", "cheap"].map((text) => valueOf(input!, text)), [0.5, "1.50", "cheap"])
  })
})

const upstream: Entry = {
  driver: "openai",
  base_url: "http://127.0.0.1:8000/v1",
  models: { qwen3: "Qwen/Qwen3-8B", large: { model: "vendor/large", images: false, max_tokens: 4096 } },
  headers: { "X-Title": "***" },
  proxy: "http://***@127.0.0.1:3128",
  fields: ["user"],
  max_inflight: 4,
  timeouts: { connect: 2, silence: 30 },
  tls: { ca: "/etc/ca.pem" }
}

describe("the console's form of an upstream", () => {
  const fields = entryFields().upstreams.map((each) => ({
    ...each,
    ...codecs[each.path] && { codec: codecs[each.path]! }
  }))
  const changes = (typed: Readonly<Record<string, string>>) => sent(fields, upstream, typed)
  const models = textsOf(fields, upstream).get("models")!

  it("changes nothing by itself, whatever the entry has", () => {
    assert.deepStrictEqual(changes({}), {})
    const name = fc.stringMatching(/^[a-z][\w./:-]{0,12}$/)
    fc.assert(
      fc.property(
        fc.dictionary(name, name),
        fc.dictionary(name.filter((each) => each !== "model"), fc.boolean()),
        (all, further) => {
          const entry = { models: { ...all, last: { model: "m", ...further } } }
          const text = textsOf(fields, entry).get("models")!
          assert.deepStrictEqual(sent(fields, {}, { models: text })["models"], {
            ...all,
            last: Object.keys(further).length === 0 ? "m" : { model: "m", ...further }
          })
        }
      )
    )
  })

  it("sends changed fields alone, and null for emptied ones", () => {
    assert.deepStrictEqual(changes({ base_url: " http://127.0.0.1:9 ", proxy: "" }), {
      base_url: "http://127.0.0.1:9",
      proxy: null
    })
    assert.deepStrictEqual(
      changes({ max_inflight: "8", "timeouts.connect": "", "timeouts.first_byte": "60" }),
      { max_inflight: 8, timeouts: { connect: null, first_byte: 60 } }
    )
    assert.deepStrictEqual(changes({ "tls.server_name": "gpu.example" }), { tls: { server_name: "gpu.example" } })
    assert.deepStrictEqual(changes({ max_inflight: "many" }), { max_inflight: "many" })
    assert.deepStrictEqual(changes({ fields: "drop" }), { fields: "drop" })
    assert.deepStrictEqual(changes({ fields: "user\nseed" }), { fields: ["user", "seed"] })
  })

  it("sends lists as a whole, in which *** keeps a secret", () => {
    assert.deepStrictEqual(changes({ headers: "X-Title: ***\nX-Team: a:b" }), {
      headers: { "X-Title": "***", "X-Team": "a:b" }
    })
    assert.deepStrictEqual(changes({ models: "a = b = c\nplain\n\nlarge = vendor/large {\"images\":true}" }), {
      models: { a: "b = c", plain: "plain", large: { model: "vendor/large", images: true } }
    })
  })

  it("adds and removes the models of the server", () => {
    assert.deepStrictEqual([...namesIn(models)], ["Qwen/Qwen3-8B", "vendor/large"])
    const more = withModel(models, "BAAI/bge-m3", true)
    assert.deepStrictEqual([...namesIn(more)], ["Qwen/Qwen3-8B", "vendor/large", "BAAI/bge-m3"])
    assert.strictEqual(withModel(more, "BAAI/bge-m3", false), models)
  })

  it("needs a test for what reaches the server, and for nothing else", () => {
    assert.isTrue(needsTest(changes({ base_url: "http://127.0.0.1:9" })))
    assert.isTrue(needsTest(changes({ headers: "" })))
    assert.isFalse(needsTest(changes({ models: "", max_inflight: "1" })))
  })
})

describe("the console's form of a route", () => {
  it("writes the fields that differ from their defaults", () => {
    const fields = entryFields().routes
    const route: Route = {
      targets: ["a", "b", "c/m"],
      wait: 0,
      also_on: [],
      spread: "order",
      schemas: "preferred",
      sticky: false
    }
    assert.deepStrictEqual(compact(fields, route), route.targets)
    assert.deepStrictEqual(compact(fields, { ...route, wait: 2, sticky: "target" }), {
      targets: route.targets,
      wait: 2,
      sticky: "target"
    })
  })
})
