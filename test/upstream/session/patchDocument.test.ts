import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { type Change, PatchDocument } from "../../../src/contracts/session/patchDocument.ts"
import type { JsonRecord } from "../../../src/domain/json.ts"
import { runs } from "../../support/effort.ts"

const after = (...patches: ReadonlyArray<JsonRecord>) => {
  const document = new PatchDocument()
  const changes: Array<Change> = []
  for (const patch of patches) document.apply(patch, (change) => changes.push(change))
  return { root: document.root, changes, document }
}

const start = (response: JsonRecord) => ({ v: { response } })

describe("PatchDocument", () => {
  it("keeps path and operation, each by itself", () => {
    const { root } = after(
      start({ a: "", b: [] }),
      { p: "response/a", v: "1" },
      { o: "APPEND", v: "2" },
      { v: "3" },
      { p: "response/b", v: [4] },
      { o: "SET", v: [5] },
      { p: "response/a", v: "6" }
    )
    assert.deepStrictEqual(root, { response: { a: "6", b: [5] } })
  })

  it("resets both with a snapshot", () => {
    const { document, root } = after(start({ a: "x" }), { p: "response/a", o: "APPEND", v: "y" }, start({ a: "z" }))
    assert.deepStrictEqual(root, { response: { a: "z" } })
    assert.deepStrictEqual([document.stickyPath, document.stickyOperation], [undefined, "SET"])
  })

  it("runs a batch with sticky parts of its own, and goes on with the batch's", () => {
    const { root } = after(
      start({ list: [{ n: "a" }, { n: "b" }], s: 0 }),
      { p: "response/list", o: "APPEND", v: [{ n: "c" }] },
      {
        p: "response",
        o: "BATCH",
        v: [{ p: "list/-1/n", o: "APPEND", v: "!" }, { v: "?" }, { p: "s", o: "SET", v: 1 }]
      },
      { v: [{ p: "s", v: 2 }, { p: "list/0", o: "BATCH", v: [{ p: "n", v: "z" }] }] }
    )
    assert.deepStrictEqual(root, { response: { list: [{ n: "z" }, { n: "b" }, { n: "c!?" }], s: 2 } })
  })

  it("appends to the older texts where no operation is given, and takes a list under the response for a batch", () => {
    const { root } = after(
      start({ content: "a", thinking_content: "", status: "WIP" }),
      { p: "response/content", v: "b" },
      { v: "c" },
      { p: "response/status", v: "X" },
      { p: "response", v: [{ p: "response/content", v: "d" }, { p: "thinking_content", v: "e" }] },
      { p: "response/content", o: "SET", v: "abcde" },
      { v: "f" }
    )
    assert.deepStrictEqual(root, { response: { content: "abcdef", thinking_content: "e", status: "X" } })
  })

  it("ignores what makes no sense", () => {
    const response = { text: "a", list: [1], n: 1 }
    const nonsense: ReadonlyArray<JsonRecord> = [
      {},
      { v: "no path" },
      { p: "response", v: "no object" },
      { p: "response/list/7", o: "SET", v: 1 },
      { p: "response/list/-2", v: 1 },
      { p: "response/text/deep/er", v: 1 },
      { p: "response/missing/-1/content", o: "APPEND", v: "x" },
      { p: "response/n", o: "APPEND", v: "x" },
      { p: "response/text", o: "REMOVE", v: "x" },
      { p: 7, o: {}, v: 1 },
      { p: Array.from({ length: 50 }, () => "a").join("/"), o: "SET", v: 1 },
      { p: "response", o: "BATCH", v: [1, null, "x", []] }
    ]
    for (const patch of nonsense) {
      assert.deepStrictEqual(after(start(structuredClone(response)), patch).root, { response }, JSON.stringify(patch))
    }
  })

  it("reaches nothing beyond the document", () => {
    const hostile = [
      "__proto__/polluted",
      "response/__proto__/polluted",
      "response/constructor/prototype/polluted",
      "toString/x"
    ]
    for (const p of hostile) after(start({}), { p, o: "SET", v: "yes" }, { p, o: "APPEND", v: "yes" })
    assert.notProperty({}, "polluted")
    assert.strictEqual(typeof Object.prototype.toString, "function")
    assert.notProperty(Object, "polluted")
    after(JSON.parse("{\"p\":\"response\",\"v\":{\"__proto__\":{\"polluted\":1}}}"))
    assert.notProperty({}, "polluted")
  })

  it("never throws, and reports every change, for any patches", () => {
    const segment = fc.constantFrom(
      "response",
      "fragments",
      "-1",
      "0",
      "1",
      "9",
      "content",
      "__proto__",
      "",
      "length",
      "status"
    )
    const path = fc.array(segment, { maxLength: 5 }).map((parts) => parts.join("/"))
    const operation = fc.constantFrom("SET", "APPEND", "BATCH", "", "??")
    const { patch } = fc.letrec<{ patch: JsonRecord; value: unknown }>((tie) => ({
      value: fc.oneof(
        fc.jsonValue({ maxDepth: 2 }),
        fc.array(tie("patch"), { maxLength: 3 }),
        fc.constant({ response: { fragments: [{ type: "RESPONSE", content: "x" }] } })
      ),
      patch: fc.record({ p: path, o: operation, v: tie("value") }, { requiredKeys: [] })
    }))
    fc.assert(
      fc.property(fc.array(patch, { maxLength: 10 }), (patches) => {
        const document = new PatchDocument()
        for (const each of patches) {
          const before = JSON.stringify(document.root)
          const changes: Array<Change> = []
          // As it comes from the wire: no two places of it are one object.
          document.apply(JSON.parse(JSON.stringify(each)), (change) => changes.push(change))
          if (changes.length === 0) assert.strictEqual(JSON.stringify(document.root), before)
        }
      }),
      { numRuns: runs(500) }
    )
  })
})
