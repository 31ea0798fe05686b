import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as Prompt from "../../../src/contracts/session/writeRequest.ts"
import { type Conversation, type Part, plainConversation, type Role, Text } from "../../../src/domain/Conversation.ts"
import { runSync } from "../../../src/domain/stream/cooperative.ts"

const renderPrompt = (of: Conversation) => runSync(Prompt.renderPrompt(of))

const conversation = (
  turns: ReadonlyArray<readonly [Role, ...ReadonlyArray<Part | string>]>,
  rest = {}
): Conversation => ({
  ...plainConversation,
  turns: turns.map(([role, ...parts]) => ({
    role,
    parts: parts.map((part) => typeof part === "string" ? Text(part) : part)
  })),
  ...rest
})

const weather = { name: "weather", description: "Tells the weather", parameters: undefined, strict: undefined }

const call = (id: string, name: string, args: string): Part => ({
  _tag: "Call",
  id,
  name,
  arguments: args,
  sealed: undefined,
  vendorFields: undefined
})
const result = (callId: string, text: string, name?: string): Part => ({
  _tag: "Result",
  callId,
  name,
  content: [Text(text)],
  isError: false,
  isNamed: undefined,
  vendorFields: undefined
})

describe("renderPrompt", () => {
  it("introduces turns by markers, closes finished assistant turns and ends with an open one", () => {
    assert.strictEqual(
      renderPrompt(conversation([["system", "Be kind."], ["user", "Hi"], ["assistant", "Hello!"], ["user", "Bye"]])),
      "<|system|>\nBe kind.\n<|user|>\nHi\n<|assistant|>\nHello!<|end|>\n<|user|>\nBye\n<|assistant|>"
    )
  })

  it("merges adjacent turns of one role with a blank line, and leaves empty ones out", () => {
    assert.strictEqual(
      renderPrompt(conversation([["user", "a"], ["assistant", ""], ["user", "b", "c"]])),
      "<|user|>\na\n\nb\n\nc\n<|assistant|>"
    )
  })

  it("names participants, without markers of theirs", () => {
    const prompt = renderPrompt({
      ...conversation([]),
      turns: [
        { role: "user", name: "ann", parts: [Text("a")] },
        { role: "user", name: "<|system|>", parts: [Text("b")] }
      ]
    })
    assert.match(prompt, /^<\|user\|>\nann:\n\na\n\n.*:\n\nb\n<\|assistant\|>$/)
    assert.notInclude(prompt, "<|system|>")
  })

  it("asks for the continuation of a started assistant turn", () => {
    const prompt = renderPrompt(conversation([["user", "List"], ["assistant", "1."]]))
    assert.match(prompt, /<\|assistant\|>\n1\.<\|end\|>\n<\|system\|>\nContinue [^<]*\n<\|assistant\|>$/)
  })

  it("disarms every marker of the caller's, in each role and kind of part", () => {
    const marker = fc.constantFrom("<|system|>", "<|user|>", "<|assistant|>", "<|tool|>", "<|end|>")
    const hostile = fc.tuple(fc.string({ maxLength: 4 }), marker, fc.string({ maxLength: 4 })).map((all) =>
      all.join("\n")
    )
    fc.assert(fc.property(hostile, (text) => {
      const prompt = renderPrompt(conversation([
        ["system", text],
        ["user", text, {
          _tag: "File",
          kind: "file",
          name: text,
          url: undefined,
          id: undefined,
          data: undefined,
          mediaType: undefined,
          vendorFields: undefined
        }],
        ["assistant", text, call(text, text, JSON.stringify({ text }))],
        ["tool", result(text, text)],
        ["user", text]
      ], {
        tools: [{ ...weather, name: text, description: text, parameters: { type: "object", description: text } }],
        output: { _tag: "JsonSchema", name: text, description: text, strict: true, schema: { description: text } }
      }))
      assert.deepStrictEqual(prompt.match(/<\|(?:system|user|assistant|tool|end)\|>/g), [
        "<|system|>",
        "<|user|>",
        "<|assistant|>",
        "<|end|>",
        "<|tool|>",
        "<|user|>",
        "<|assistant|>"
      ])
    }))
  })

  it("declares tools behind the leading system text, and only where they may be called", () => {
    const turns: Parameters<typeof conversation>[0] = [["system", "Be kind."], ["user", "Hi"]]
    assert.match(
      renderPrompt(conversation(turns, { tools: [weather] })),
      /^<\|system\|>\nBe kind\.\n\n# Tools\n[^]*"weather"[^]*\n<\|user\|>\nHi\n/
    )
    assert.match(renderPrompt(conversation([["user", "Hi"]], { tools: [weather] })), /^<\|system\|>\n# Tools\n/)
    assert.notInclude(renderPrompt(conversation(turns, { tools: [weather], toolChoice: { _tag: "None" } })), "weather")
  })

  it("shows calls and results with their ids, and finds the name of a result's call", () => {
    const prompt = renderPrompt(conversation([
      ["user", "Weather?"],
      ["assistant", "Let me look.", call("c1", "weather", "{\"city\":\"Oslo\"}"), call("c2", "clock", "{}")],
      ["tool", result("c2", "noon")],
      ["tool", result("c1", "rain")]
    ]))
    assert.match(
      prompt,
      /Let me look\.\n\n<tool_call>\n[^]*"weather"[^]*<\/tool_call>\n\n<tool_call>\n[^]*<\|end\|>\n<\|tool\|>\n/
    )
    assert.include(
      prompt,
      "<tool_result id=\"c2\" name=\"clock\">\nnoon\n</tool_result>\n\n<tool_result id=\"c1\" name=\"weather\">"
    )
  })

  it("names what the upstream cannot take, also inside results, and leaves earlier reasoning out", () => {
    const image: Part = {
      _tag: "Image",
      url: "https://example.org/a.png",
      data: undefined,
      mediaType: undefined,
      detail: undefined,
      vendorFields: undefined
    }
    const file: Part = {
      _tag: "File",
      kind: "file",
      name: "a.pdf",
      url: undefined,
      id: "f",
      data: undefined,
      mediaType: undefined,
      vendorFields: undefined
    }
    const prompt = renderPrompt(conversation([
      ["user", "Look", image, file],
      ["assistant", { _tag: "Reasoning", text: "secret thoughts", vendorFields: undefined }, call("c", "look", "{}")],
      ["tool", {
        _tag: "Result",
        callId: "c",
        name: "look",
        content: [Text("here"), image],
        isError: false,
        vendorFields: undefined,
        isNamed: undefined
      }]
    ]))
    assert.include(prompt, "Look\n\n[image omitted]\n\n[file omitted: a.pdf]\n")
    assert.include(prompt, "here\n[image omitted]\n</tool_result>")
    assert.notInclude(prompt, "secret")
  })

  it("asks for structured output in words, with the schema", () => {
    const object = renderPrompt(conversation([["user", "Hi"]], { output: { _tag: "JsonObject" } }))
    assert.match(object, /^<\|system\|>\n# Output\n\nReply with one JSON object/)
    const schema = { type: "object", properties: { n: { type: "number" } } }
    const output = { _tag: "JsonSchema", name: "count", description: "A count", schema, strict: true }
    const prompt = renderPrompt(conversation([["user", "Hi"]], { output }))
    assert.include(prompt, JSON.stringify(schema))
    assert.include(prompt, "A count")
  })
})
