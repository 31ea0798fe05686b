/** The work for a request is linear: steps at n, 2n and 4n. The prompt has at most six times the size of the request. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { renderPrompt } from "../../src/contracts/session/writeRequest.ts"
import {
  type Conversation,
  type JsonSchema,
  type Part,
  plainConversation,
  Text,
  type Turn
} from "../../src/domain/Conversation.ts"
import { estimateCooperatively } from "../../src/domain/estimateConversation.ts"
import { type Cooperative, runSync, sliceChars, sliceItems } from "../../src/domain/stream/cooperative.ts"
import { declareTools } from "../../src/sieve/declaration.ts"
import { itemsOf, propertyOf, typesOf, visitedNodes } from "../../src/sieve/schema.ts"

const conversation = (turns: ReadonlyArray<Turn>, rest: Partial<Conversation> = {}): Conversation => ({
  ...plainConversation,
  turns,
  ...rest
})

const counted = (work: Cooperative<unknown>) => {
  let items = 0
  let chars = 0
  let most = 0
  for (let next = work.next(); next.done !== true; next = work.next()) {
    items += next.value.items
    chars += next.value.chars
    most = Math.max(most, next.value.items / sliceItems, next.value.chars / sliceChars)
  }
  return { steps: items + chars, most }
}

const call = (id: string, name: string): Part => ({
  _tag: "Call",
  id,
  name,
  arguments: "{\"a\":[1,2]}",
  sealed: undefined,
  vendorFields: undefined
})
const result = (callId: string, name?: string): Part => ({
  _tag: "Result",
  callId,
  name,
  content: [Text("ok")],
  isError: false,
  isNamed: undefined,
  vendorFields: undefined
})
const list = <A>(count: number, make: (index: number) => A) => Array.from({ length: count }, (_, i) => make(i))

const shapes: Readonly<Record<string, (n: number) => ReadonlyArray<Turn>>> = {
  "`<` characters": (n) => [{ role: "user", parts: [Text("<".repeat(n * 200))] }],
  "tag heads without an end": (n) => [{ role: "user", parts: [Text("<a b c d e f g h ".repeat(n * 20))] }],
  "one long tag head without an end": (n) => [{ role: "user", parts: [Text("<" + "a ".repeat(n * 200))] }],
  "content parts": (n) => [{ role: "user", parts: list(n, () => Text("a")) }],
  messages: (n) => list(n, () => ({ role: "user", parts: [Text("a")] })),
  "tool results without ids": (n) => [
    { role: "assistant", parts: list(n, () => call("", "f")) },
    { role: "tool", parts: list(n, () => result("")) }
  ],
  "tool results without ids, with other names": (n) => [
    { role: "assistant", parts: list(n, (i) => call("", `f${i}`)) },
    { role: "tool", parts: list(n, (i) => result("", `f${n - i - 1}`)) }
  ],
  "brackets in arguments": (n) => [
    {
      role: "assistant",
      parts: [{
        _tag: "Call",
        id: "a",
        name: "f",
        arguments: JSON.stringify("[A<".repeat(n * 100)),
        sealed: undefined,
        vendorFields: undefined
      }]
    }
  ]
}

describe("rendering and estimating a prompt", () => {
  it.each(Object.entries(shapes))("takes steps in proportion to the request: %s", (_, shape) => {
    const steps = [4000, 8000, 16_000].map((n) => {
      const of = conversation(shape(n))
      const prompt = counted(renderPrompt(of))
      const estimate = counted(estimateCooperatively(of))
      assert.isAtMost(Math.max(prompt.most, estimate.most), 1.5)
      return prompt.steps + estimate.steps
    })
    assert.isAbove(steps[0]!, 0)
    assert.isAtMost(steps[1]!, 2.6 * steps[0]!)
    assert.isAtMost(steps[2]!, 2.6 * steps[1]!)
  })
})

describe("the schema of a tool", () => {
  const loops: Readonly<Record<string, (n: number) => JsonSchema>> = {
    "a union of references to itself": (n) => ({ anyOf: list(n, () => ({ $ref: "#" })) }),
    "unions that refer to one another": (n) => ({
      anyOf: list(n, (i) => ({ $ref: `#/$defs/d${i}` })),
      $defs: Object.fromEntries(list(n, (i) => [`d${i}`, { oneOf: list(n, (j) => ({ $ref: `#/$defs/d${j}` })) }]))
    }),
    "required properties that refer to the whole schema": (n) => ({
      type: "object",
      properties: Object.fromEntries(list(n, (i) => [`p${i}`, { $ref: "#" }])),
      required: list(n, (i) => `p${i}`)
    }),
    "references of a megabyte": () => ({ anyOf: list(100, () => ({ $ref: "#" + "/a".repeat(10_000) })) }),
    "a default of a megabyte": () => ({
      type: "object",
      properties: { a: { default: "x".repeat(1_000_000) } },
      required: ["a"]
    })
  }
  it.each(Object.entries(loops))("is walked once, within bounds: %s", (_, make) => {
    for (const n of [10, 20, 40]) {
      const parameters = make(n)
      const at = { schema: parameters, root: parameters }
      for (let i = 0; i < 3; i++) {
        typesOf(at)
        itemsOf(at)
        propertyOf(at, "p1")
      }
      const written = JSON.stringify(parameters)
      const prompt = declareTools([{ name: "f", description: undefined, parameters, strict: undefined }], {
        _tag: "Auto"
      }, true)
      assert.isAtMost(visitedNodes(parameters), 1000)
      assert.isAtMost(prompt.length, 6 * written.length + 2000 + 4000)
    }
  })

  it("has an example of at most 2,000 characters, without its deepest members if necessary", () => {
    const properties = Object.fromEntries(list(20, (i) => [`p${i}`, { $ref: "#" }]))
    const parameters: JsonSchema = { type: "object", properties, required: Object.keys(properties) }
    const prompt = declareTools([{ name: "f", description: undefined, parameters, strict: undefined }], {
      _tag: "Auto"
    }, true)
    const example = prompt.slice(prompt.indexOf("<tool_call>"), prompt.indexOf("</tool_call>"))
    assert.isAtMost(example.length, 2000)
    assert.include(example, "\"p19\"")
  })
})

describe("the size of a prompt", () => {
  const text = fc.string({ unit: fc.constantFrom("<", "|", "a", "\"", "\\", "\n", "＜", "[", "&", "tool_call", "u") })
  const part = fc.oneof(
    text.map(Text),
    fc.tuple(text, text, text).map(([id, name, args]): Part => ({
      _tag: "Call",
      id,
      name,
      arguments: args,
      sealed: undefined,
      vendorFields: undefined
    })),
    fc.tuple(text, text).map(([callId, content]): Part => ({
      _tag: "Result",
      callId,
      name: undefined,
      content: [Text(content)],
      isError: false,
      isNamed: undefined,
      vendorFields: undefined
    }))
  )
  it("is at most six times the request's, plus 6,000 characters", () => {
    fc.assert(fc.property(fc.array(fc.array(part)), (turns) => {
      const of = conversation(turns.flatMap((parts): ReadonlyArray<Turn> => [
        { role: "user", parts: parts.filter(({ _tag }) => _tag === "Text") },
        { role: "assistant", parts: parts.filter(({ _tag }) => _tag === "Call") },
        { role: "tool", parts: parts.filter(({ _tag }) => _tag === "Result") }
      ]))
      assert.isAtMost(runSync(renderPrompt(of)).length, 6 * JSON.stringify(of).length + 6000)
    }))
  })
})
