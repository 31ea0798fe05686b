/**
 * The page of keys: which configured key belongs to an id, and the lines for clients.
 */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { createHash } from "node:crypto"
import { clients, linesOf } from "../../../scripts/clients.ts"
import { keyId } from "../../../src/domain/identity.ts"
import { shellWord } from "../../../src/domain/printed.ts"
import { keyIdOf, keyOfId, sha256Hex } from "../../../src/web/pages/keys/keys.ts"
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

  it("find a key; an unknown id gives `undefined`", () => {
    const keys = ["sk-team-b", "sk-team-a", "sk-team-c"]
    for (const key of [...keys, ...keys]) assert.strictEqual(keyOfId(keys, keyIdOf(key)), key)
    assert.isUndefined(keyOfId(keys, keyIdOf("sk-team-new")))
    assert.isUndefined(keyOfId([], keyIdOf("sk-team-a")))
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
        const forms = [key, shellWord(key).slice(1), JSON.stringify(key).slice(1, -1)]
        assert.isTrue(forms.some((form) => snippet.includes(form)), name)
        assert.include(snippet, access.base)
        assert.include(snippet, access.model)
      }
    }))
  })
})
