/** The machines that pass requests and replies through: the same result however the text is cut, and nothing else changed. */
import { assert, describe, it, vi } from "@effect/vitest"
import * as fc from "fast-check"
import { EventCut } from "../../../src/domain/stream/EventCut.ts"
import { boundaryOf, type FormPiece, FormScan, modelPlace } from "../../../src/domain/stream/FormScan.ts"
import { TopLevel } from "../../../src/domain/stream/TopLevel.ts"
import { cutsOf } from "../../support/cuts.ts"
import { runs } from "../../support/effort.ts"

const textual = (value: unknown): value is { readonly [key: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const objects = fc.record({
  before: fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 })),
  model: fc.string(),
  usage: fc.jsonValue({ maxDepth: 2 }),
  after: fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 })),
  space: fc.constantFrom(undefined, 1)
}).map(({ after, before, model, space, usage }) =>
  JSON.stringify({ ...before, model, usage, ...after, nested: { model: "inner", usage: 1 } }, null, space)
)

const cutObjects = objects.chain((text) => cutsOf(text).map((pieces) => ({ text, pieces })))

describe("TopLevel", () => {
  it("replaces the model of an object, keeps named members, and passes the rest as it is, however it is cut", () => {
    fc.assert(
      fc.property(cutObjects, ({ pieces, text }) => {
        const place = Symbol("place")
        const scan = new TopLevel(place, ["usage"])
        const out: Array<string | typeof place> = []
        for (const piece of pieces) scan.push(piece, out)
        const value: unknown = JSON.parse(text)
        assert(textual(value))
        const isReplaced = typeof value["model"] === "string"
        assert.strictEqual(out.filter((piece) => piece === place).length, isReplaced ? 1 : 0)
        const restored = out.map((piece) => typeof piece === "string" ? piece : JSON.stringify(value["model"])).join("")
        assert.strictEqual(restored, text)
        assert.deepStrictEqual(JSON.parse(scan.kept.get("usage") ?? "null"), value["usage"])
      }),
      { numRuns: runs(300) }
    )
  })

  it("replaces every model of an object with several", () => {
    const out: Array<string> = []
    new TopLevel("\"x\"").push(`{"model":"a", "m\\u006fdel" :"b\\"c","models":"d"}`, out)
    assert.strictEqual(out.join(""), `{"model":"x", "m\\u006fdel" :"x","models":"d"}`)
  })

  it.each(["[1,{\"model\":\"a\"}]", "\"model\"", "7", "", "{\"model\":7}", "{\"model\":{\"model\":\"a\"}}"])(
    "passes other text as it is: %s",
    (text) => {
      const out: Array<string> = []
      new TopLevel("\"x\"").push(text, out)
      assert.strictEqual(out.join(""), text)
    }
  )

  it("keeps no member that is too long", () => {
    const scan = new TopLevel("\"x\"", ["usage", "error"])
    scan.push(`{"usage":"${"a".repeat(70_000)}","error":null}`, [])
    assert.deepStrictEqual([...scan.kept], [["error", "null"]])
  })
})

const lines = fc.array(fc.constantFrom("data: {}", ": c", "", "\n", "\r", "\r\n", "\n\n", "\r\n\r\n"), {
  maxLength: 20
})
const cutEvents = lines.map((all) => all.join("")).chain((text) => cutsOf(text).map((pieces) => ({ text, pieces })))

const cutAll = (pieces: ReadonlyArray<string>) => {
  const cut = new EventCut()
  const out: Array<string> = []
  for (const piece of pieces) cut.push(piece, out)
  const finished = out.join("")
  cut.end(out)
  return { finished, whole: out.join(""), out }
}

describe("EventCut", () => {
  it("emits the same events however the text is cut, and loses nothing", () => {
    fc.assert(
      fc.property(cutEvents, ({ pieces, text }) => {
        const { finished, whole } = cutAll(pieces)
        assert.strictEqual(whole, text)
        assert.strictEqual(finished, cutAll([text]).finished)
      }),
      { numRuns: runs(300) }
    )
  })

  it("holds an event until its blank line", () => {
    assert.deepStrictEqual(cutAll(["data: a\n", "\ndata: b\n\nda", "ta: c"]).out, [
      "data: a\n\ndata: b\n\n",
      "data: c"
    ])
  })
})

const scanned = (pieces: ReadonlyArray<string>, boundary: string) => {
  const scan = new FormScan(boundary, 1024)
  const out: Array<FormPiece> = []
  for (const piece of pieces) scan.push(Buffer.from(piece, "latin1"), out)
  scan.end()
  const text = out.map((piece) => piece === modelPlace ? "<model>" : Buffer.from(piece).toString("latin1")).join("")
  return { model: scan.model, fault: scan.fault, text }
}

const values = fc.stringMatching(/^[\r\n\-a-z:;"= ]{0,40}$/)
const forms = fc.record({ before: fc.array(values, { maxLength: 3 }), after: fc.array(values, { maxLength: 3 }) })
const partOf = (name: string, value: string) =>
  `--cut\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
const formOf = (before: ReadonlyArray<string>, model: string, after: ReadonlyArray<string>) =>
  [...before.map((value, i) => partOf(`a${i}`, value)), model, ...after.map((value, i) => partOf(`b${i}`, value))]
    .join("") + "--cut--\r\n"
const cutForms = forms.chain(({ after, before }) => {
  const text = formOf(before, partOf("model", "m-1"), after)
  return cutsOf(text).map((pieces) => ({ pieces, expected: formOf(before, partOf("model", "<model>"), after) }))
})

describe("FormScan", () => {
  it("takes the model out of a form and passes the rest as it is, however it is cut", () => {
    fc.assert(
      fc.property(cutForms, ({ expected, pieces }) => {
        assert.deepStrictEqual(scanned(pieces, "cut"), { model: "m-1", fault: undefined, text: expected })
      }),
      { numRuns: runs(300) }
    )
  })

  it("reads what the runtime's own client writes", async () => {
    const form = new FormData()
    form.append("file", new File(["RIFF\r\n--x"], "a \"b\".wav"))
    form.append("model", "é-1")
    const request = new Request("http://gateway", { method: "POST", body: form })
    const boundary = boundaryOf(request.headers.get("content-type") ?? "")
    const text = Buffer.from(await request.arrayBuffer()).toString("latin1")
    assert.deepInclude(scanned([text], boundary ?? ""), { model: "é-1", fault: undefined })
  })

  it("copies each byte a few times at most, even where headers arrive byte by byte", () => {
    const longHeaders = partOf(`a"; x="${"b".repeat(7_000)}`, "")
    const form = formOf([], partOf("model", "m-1"), []).replace("--cut", longHeaders.repeat(2) + "--cut")
    const concat = vi.spyOn(Buffer, "concat")
    const { model } = scanned([...form], "cut")
    const copied = concat.mock.results.reduce((sum, { value }) => sum + (value as Buffer).length, 0)
    concat.mockRestore()
    assert.strictEqual(model, "m-1")
    // Outside of headers, at most a delimiter is held.
    assert.isAtMost(copied, 2 * "\r\n--cut".length * form.length)
  })

  it.each([
    ["multipart/form-data; boundary=abc", "abc"],
    ["multipart/form-data;boundary=\"a b\"; charset=utf-8", "a b"],
    ["Multipart/Form-Data; charset=utf-8; Boundary=x'y", "x'y"],
    ["multipart/form-data", undefined],
    [`multipart/form-data; boundary=${"x".repeat(71)}`, undefined]
  ])("finds the boundary in %s", (contentType, boundary) => {
    assert.strictEqual(boundaryOf(contentType), boundary)
  })

  it("bounds the headers of a part, the number of parts, and the model", () => {
    const fault = (text: string) => scanned([text], "cut").fault?.message
    assert.match(fault(`--cut\r\nX: ${"x".repeat(9_000)}`) ?? "", /too long/)
    assert.match(fault(partOf("a", "").repeat(1_001)) ?? "", /more than 1000 parts/)
    assert.match(fault(partOf("model", "x".repeat(2_000))) ?? "", /too long/)
  })
})
