/**
 * The page of keys: which configured key belongs to an id, and what the form of a key changes.
 */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { createHash } from "node:crypto"
import { clients, linesOf } from "../../../scripts/clients.ts"
import { keyId, keyPreview } from "../../../src/domain/identity.ts"
import { amount, asLocal, changesOf, type KeyDraft, wholeNumber } from "../../../src/web/pages/keys/draft.ts"
import { keyIdOf, type KeyItem, keyOfId, previewOf, sha256Hex } from "../../../src/web/pages/keys/keys.ts"
import { snippetNames, snippetOf } from "../../../src/web/pages/keys/snippets.ts"

const ofNode = (text: string): string => createHash("sha256").update(text).digest("hex")

const text = fc.string({ unit: "binary", maxLength: 200 })

describe("key ids in the console", () => {
  it("are the same as in the gateway", () => {
    for (const length of [0, 1, 55, 56, 63, 64, 65, 119, 120, 100_000]) {
      assert.strictEqual(sha256Hex("a".repeat(length)), ofNode("a".repeat(length)))
    }
    fc.assert(fc.property(text, (key) => {
      assert.strictEqual(sha256Hex(key), ofNode(key))
      assert.strictEqual(keyIdOf(` ${key}\n`), keyId(key, ofNode))
    }))
  })

  it("previews are the same as in the gateway", () => {
    const prefixed = fc.tuple(fc.constantFrom("", "sk-gw-", "sk-"), text).map(([start, end]) => start + end)
    fc.assert(fc.property(prefixed, (key) => assert.strictEqual(previewOf(key), keyPreview(key))))
  })

  it("find a key; an unknown id gives `undefined`", () => {
    const keys = ["sk-team-b", "sk-team-a", "sk-team-c"]
    for (const key of [...keys, ...keys]) assert.strictEqual(keyOfId(keys, keyIdOf(key)), key)
    assert.isUndefined(keyOfId(keys, keyIdOf("sk-team-new")))
    assert.isUndefined(keyOfId([], keyIdOf("sk-team-a")))
  })
})

const item: KeyItem = {
  id: "0123456789abcdef",
  preview: "sk-gw-ab...",
  state: "active",
  name: "team a",
  note: null,
  disabled: false,
  expires_at: "2030-01-01T10:20:30Z",
  models: ["upstream-chat"],
  max_inflight: 4,
  limits: [{ window: "week", requests: null, tokens: 5 }, { window: "day", requests: 0, tokens: null }],
  created_at: null,
  usage: { in_flight: 0, max_inflight: 4, last_used_at: null, requests_today: 0, windows: [] }
}

/** The form as it opens. */
const opened = (of: KeyItem): KeyDraft => ({
  name: of.name ?? "",
  note: of.note ?? "",
  disabled: of.disabled,
  expires_at: asLocal(of.expires_at),
  models: (of.models ?? []).join("\n"),
  max_inflight: of.max_inflight,
  limits: of.limits
})

describe("the console's form of a key", () => {
  it("sends only the edited fields", () => {
    assert.deepStrictEqual(changesOf(item, opened(item)), {})
    const changes: ReadonlyArray<Partial<KeyDraft>> = [
      { name: " team b " },
      { note: "ours" },
      { disabled: true },
      { expires_at: "2031-02-03T04:05" },
      { models: "a\n\n b " },
      { max_inflight: 0 },
      { limits: [{ window: "day", requests: 1, tokens: null }] }
    ]
    for (const change of changes) {
      assert.deepStrictEqual(Object.keys(changesOf(item, { ...opened(item), ...change })), Object.keys(change))
    }
    assert.deepStrictEqual(changesOf(item, { ...opened(item), models: "a\n\n b ", name: " team b " }), {
      name: "team b",
      models: ["a", "b"]
    })
  })

  it("sends nothing without an edit, whatever the expiry", () => {
    const times = fc.date({ min: new Date(0), max: new Date("9999-01-01T00:00:00Z"), noInvalidDate: true })
    fc.assert(fc.property(times, (time) => {
      const key = { ...item, expires_at: time.toISOString() }
      assert.deepStrictEqual(changesOf(key, opened(key)), {})
    }))
  })

  it("clears the value of an emptied field, and distinguishes a limit of 0 from no limit", () => {
    assert.deepStrictEqual(
      changesOf(item, { ...opened(item), name: "", expires_at: "", models: "\n", max_inflight: null, limits: [] }),
      { name: null, expires_at: null, models: null, max_inflight: null, limits: [] }
    )
    const emptied = [{ window: "week", requests: null, tokens: 5 }] as const
    assert.deepStrictEqual(changesOf(item, { ...opened(item), limits: emptied }), { limits: emptied })
  })
})

describe("numbers in the console's form of a key", () => {
  it("are read with separators of thousands as people write them", () => {
    for (const locale of ["en-GB", "de-DE", "fr-FR", "de-CH", "zh-CN"]) {
      fc.assert(fc.property(fc.nat(), (value) => {
        assert.strictEqual(wholeNumber(` ${value.toLocaleString(locale)} `), value)
        assert.strictEqual(wholeNumber(String(value)), value)
      }))
    }
    assert.isNull(wholeNumber(" "))
    for (const text of ["1.5", "1,50", "-1", "a", "1e3", "12,3456"]) assert.isUndefined(wholeNumber(text), text)
  })

  it("amounts are decimal numbers with at most nine places", () => {
    assert.strictEqual(amount("1,250.50"), "1250.50")
    assert.strictEqual(amount("0.000000001"), "0.000000001")
    assert.isNull(amount(""))
    for (const text of ["1,5", "-1", "1.0000000001", "USD 5"]) assert.isUndefined(amount(text), text)
  })
})

describe("the console's snippets for clients", () => {
  const access = { base: "http://127.0.0.1:5001", key: "my-key", model: "upstream-chat" }

  /** A file without its comments, and JSON without the models that only the documents list. */
  const contentOf = (text: string): unknown =>
    text.startsWith("{")
      ? JSON.parse(text, (key, value) =>
        key !== "models"
          ? value
          : Array.isArray(value)
          ? value.slice(0, 1)
          : Object.fromEntries(Object.entries(value).slice(0, 1)))
      : text.split("\n").filter((line) => !line.startsWith("#")).join("\n").trim()

  it.each(clients.map((client) => [client.name, client] as const))("%s has the lines of the documents", (_, client) => {
    const { console, docs } = linesOf(client)
    assert.deepStrictEqual(console.variables, docs.variables)
    assert.deepStrictEqual(Object.keys(console.files), Object.keys(docs.files))
    for (const [place, text] of Object.entries(docs.files)) {
      assert.deepStrictEqual(contentOf(console.files[place]!), contentOf(text), place)
    }
    assert.isAbove(Object.keys(docs.variables).length + Object.keys(docs.files).length, 0)
  })

  it("have the address, the key and the model, whatever quotes they contain", () => {
    fc.assert(fc.property(fc.stringMatching(/^[\w'"$-]{1,20}$/), (key) => {
      for (const name of snippetNames) {
        const snippet = snippetOf(name, { ...access, key })
        const forms = [key, key.replaceAll("'", `'\\''`), JSON.stringify(key).slice(1, -1)]
        assert.isTrue(forms.some((form) => snippet.includes(form)), name)
        assert.include(snippet, access.base)
        assert.include(snippet, access.model)
      }
    }))
  })
})
