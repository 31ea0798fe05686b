import { assert, describe, it } from "@effect/vitest"
import * as RequestBody from "../../../src/contracts/chat/writeRequest.ts"
import type { ToolMode } from "../../../src/contracts/shared/chatMessages.ts"
import {
  type Conversation,
  noSampling,
  type Part,
  plainConversation,
  Reasoning,
  Text,
  type Turn
} from "../../../src/domain/Conversation.ts"
import { runSync } from "../../../src/domain/stream/cooperative.ts"
import { renderCall } from "../../../src/sieve/history.ts"

const server = { words: undefined, policy: "pass" } as const

const chatRequest = (model: string, conversation: Conversation, tools: ToolMode) => ({
  body: runSync(
    RequestBody.chatRequest(model, conversation, {
      history: undefined,
      names: undefined,
      ...server,
      tools
    }, false)
  ),
  stop: RequestBody.sentStop(tools, conversation)
})

const conversation = (rest: Partial<Conversation>): Conversation => ({
  ...plainConversation,
  turns: [{ role: "user", parts: [Text("Hi")] }],
  ...rest
})

const bodyOf = (rest: Partial<Conversation>, mode: ToolMode = "native"): { readonly [key: string]: unknown } =>
  JSON.parse(chatRequest("m", conversation(rest), mode).body)

interface Message {
  readonly role: string
  readonly name?: string
  readonly tool_call_id?: string
  readonly reasoning_content?: string
  readonly content: string | ReadonlyArray<{ readonly type: string; readonly text?: string }> | null
}

const messagesOf = (turns: ReadonlyArray<Turn>, mode: ToolMode = "native", rest: Partial<Conversation> = {}) =>
  bodyOf({ turns, ...rest }, mode)["messages"] as ReadonlyArray<Message>

const user = (...parts: ReadonlyArray<Part>): Turn => ({ role: "user", parts })
const assistant = (...parts: ReadonlyArray<Part>): Turn => ({ role: "assistant", parts })
const system = (text: string): Turn => ({ role: "system", parts: [Text(text)] })
const call = (id: string, name = "f"): Part => ({
  _tag: "Call",
  id,
  name,
  arguments: "{\"a\":1}",
  sealed: undefined,
  vendorFields: undefined
})
const result = (callId: string, ...content: ReadonlyArray<Part>): Turn => ({
  role: "tool",
  parts: [{
    _tag: "Result",
    callId,
    name: undefined,
    isError: false,
    content: content.filter((part) => part._tag === "Text" || part._tag === "Image"),
    isNamed: undefined,
    vendorFields: undefined
  }]
})
const image: Part = {
  _tag: "Image",
  url: undefined,
  data: "AAAA",
  mediaType: "image/jpeg",
  detail: "low",
  vendorFields: undefined
}
const imagePart = { type: "image_url", image_url: { url: "data:image/jpeg;base64,AAAA", detail: "low" } }
const tools = [{ name: "f", description: "does f", parameters: { type: "object" }, strict: true }]

describe("chatRequest", () => {
  it("streams always, with usage, and says nothing that the caller did not", () => {
    for (const mode of ["native", "prompt"] as const) {
      assert.deepStrictEqual(bodyOf({}, mode), {
        model: "m",
        messages: [{ role: "user", content: "Hi" }],
        stream: true,
        stream_options: { include_usage: true }
      })
    }
  })

  it("passes on what the caller gave, by its own name and unchanged", () => {
    const schema = { type: "object", properties: { a: { type: "string" } } }
    const body = bodyOf({
      stop: ["END", "STOP"],
      sampling: {
        ...noSampling,
        temperature: 0,
        topP: 0.9,
        topK: 40,
        maxTokens: 5,
        maxCompletionTokens: 6,
        seed: 7,
        presencePenalty: -0.5,
        frequencyPenalty: 0.5,
        logitBias: { "50256": -100 }
      },
      thinking: { mode: "on", effort: "low", budget: undefined, fields: undefined },
      output: { _tag: "JsonSchema", name: "city", description: undefined, schema, strict: true }
    })
    const { messages: _, ...rest } = body
    assert.deepStrictEqual(rest, {
      model: "m",
      stream: true,
      stream_options: { include_usage: true },
      temperature: 0,
      top_p: 0.9,
      top_k: 40,
      max_tokens: 5,
      max_completion_tokens: 6,
      seed: 7,
      presence_penalty: -0.5,
      frequency_penalty: 0.5,
      logit_bias: { "50256": -100 },
      reasoning_effort: "low",
      stop: ["END", "STOP"],
      response_format: { type: "json_schema", json_schema: { name: "city", schema, strict: true } }
    })
    assert.deepStrictEqual(bodyOf({ output: { _tag: "JsonObject" } })["response_format"], {
      type: "json_object"
    })
  })

  it("keeps stop sequences to the gateway where calls are written as text", () => {
    const request = (mode: ToolMode) => chatRequest("m", conversation({ tools, stop: ["}"] }), mode)
    assert.deepStrictEqual(request("native").stop, ["}"])
    assert.deepStrictEqual(request("prompt").stop, [])
    assert.notProperty(JSON.parse(request("prompt").body), "stop")
  })

  describe("content", () => {
    it("is a string where it is text alone", () => {
      assert.deepStrictEqual(messagesOf([system("S"), user(Text("a"), Text("b")), assistant(Text("c"))]), [
        { role: "system", content: "S" },
        { role: "user", content: "a\n\nb" },
        { role: "assistant", content: "c" }
      ])
    })

    it("has images, audio, video and files as parts", () => {
      const file = {
        _tag: "File",
        name: undefined,
        url: undefined,
        id: undefined,
        data: undefined,
        mediaType: undefined,
        vendorFields: undefined
      } as const
      const cases: ReadonlyArray<readonly [Part, object]> = [
        [image, imagePart],
        [{ ...image, data: undefined, url: "https://x/y.png", detail: undefined }, {
          type: "image_url",
          image_url: { url: "https://x/y.png" }
        }],
        [{ ...file, kind: "audio", data: "AAAA", mediaType: "audio/wav" }, {
          type: "input_audio",
          input_audio: { data: "AAAA", format: "wav" }
        }],
        [{ ...file, kind: "audio", data: "AAAA", mediaType: "audio/mpeg; rate=1" }, {
          type: "input_audio",
          input_audio: { data: "AAAA", format: "mp3" }
        }],
        [{ ...file, kind: "audio", url: "https://x/y.wav" }, {
          type: "audio_url",
          audio_url: { url: "https://x/y.wav" }
        }],
        [{ ...file, kind: "video", url: "https://x/y.mp4" }, {
          type: "video_url",
          video_url: { url: "https://x/y.mp4" }
        }],
        [{ ...file, kind: "video", data: "AAAA", mediaType: "video/webm" }, {
          type: "video_url",
          video_url: { url: "data:video/webm;base64,AAAA" }
        }],
        [
          { ...file, kind: "file", data: "AAAA", mediaType: "application/pdf", name: "a.pdf" },
          {
            type: "file",
            file: { file_data: "data:application/pdf;base64,AAAA", filename: "a.pdf" }
          }
        ],
        [{ ...file, kind: "file", id: "file-1" }, {
          type: "file",
          file: { file_id: "file-1" }
        }],
        [{ ...file, kind: "file", url: "https://x/a.pdf" }, {
          type: "text",
          text: "[file omitted: https://x/a.pdf]"
        }]
      ]
      for (const mode of ["native", "prompt"] as const) {
        for (const [part, expected] of cases) {
          const [message] = messagesOf([user(Text("See:"), part)], mode)
          assert.deepStrictEqual(message?.content as unknown, [{ type: "text", text: "See:" }, expected])
        }
      }
    })
  })

  describe("native tools", () => {
    it("are declared as the server's own, with the choice", () => {
      const declared = [{
        type: "function",
        function: {
          name: "f",
          description: "does f",
          parameters: { type: "object", properties: {} },
          strict: true
        }
      }]
      assert.deepInclude(bodyOf({ tools }), { tools: declared })
      assert.notProperty(bodyOf({ tools }), "tool_choice")
      assert.notProperty(bodyOf({ tools }), "parallel_tool_calls")
      assert.deepInclude(bodyOf({ tools, toolChoice: { _tag: "Required" }, parallelToolCalls: false }), {
        tool_choice: "required",
        parallel_tool_calls: false
      })
      assert.deepInclude(bodyOf({ tools, toolChoice: { _tag: "Function", name: "f" } }), {
        tool_choice: { type: "function", function: { name: "f" } }
      })
      const none = bodyOf({ tools, toolChoice: { _tag: "None" }, parallelToolCalls: false })
      for (const field of ["tools", "tool_choice", "parallel_tool_calls"]) assert.notProperty(none, field)
    })

    it("have calls and results as messages of their own, results next to their calls", () => {
      const turns = [
        user(Text("Go")),
        assistant(call("a"), call("b", "g")),
        result("a", Text("one"), image),
        result("b", Text("two")),
        user(Text("And?"))
      ]
      const calls = [
        { id: "a", type: "function", function: { name: "f", arguments: "{\"a\":1}" } },
        { id: "b", type: "function", function: { name: "g", arguments: "{\"a\":1}" } }
      ]
      assert.deepStrictEqual(messagesOf(turns) as unknown, [
        { role: "user", content: "Go" },
        { role: "assistant", content: null, tool_calls: calls },
        { role: "tool", tool_call_id: "a", content: "one" },
        { role: "tool", tool_call_id: "b", content: "two" },
        { role: "user", content: [imagePart] },
        { role: "user", content: "And?" }
      ])
    })

    it("get ids if the caller sent none", () => {
      const messages = messagesOf([user(Text("Go")), assistant(call("")), result("", Text("one"))])
      assert.strictEqual(messages[2]?.tool_call_id, "call_history_0")
      assert.include(JSON.stringify(messages[1]), "\"id\":\"call_history_0\"")
    })

    it("take reasoning back, within its tool loop and after it", () => {
      const reasoning: Part = Reasoning("Hm.")
      const loop = [user(Text("Go")), assistant(reasoning, call("a")), result("a", Text("one"))]
      assert.strictEqual(messagesOf(loop)[1]?.reasoning_content, "Hm.")
      assert.strictEqual(messagesOf([...loop, user(Text("And?"))])[1]?.reasoning_content, "Hm.")
      assert.strictEqual(messagesOf([user(Text("Go")), assistant(reasoning, Text("x"))])[1]?.reasoning_content, "Hm.")
    })
  })

  it("names participants, in messages that the gateway composes as text", () => {
    const turns = [{ role: "user", name: "ann", parts: [Text("Hi")] }] as const
    assert.deepStrictEqual(messagesOf(turns), [{ role: "user", name: "ann", content: "Hi" }])
    assert.deepInclude(messagesOf(turns, "prompt", { tools }).at(-1), { role: "user", content: "ann:\n\nHi" })
  })

  describe("tools in the prompt", () => {
    const ask = (turns: ReadonlyArray<Turn>, rest: Partial<Conversation> = {}) =>
      messagesOf(turns, "prompt", { tools, ...rest })

    it("are declared in the one system message, and to the server not at all", () => {
      const declared = ask([user(Text("Go"))])
      assert.deepStrictEqual(declared.map(({ role }) => role), ["system", "user"])
      assert.include(String(declared[0]?.content), "does f")
      const led = ask([system("Be kind."), system("Be brief."), user(Text("Go"))])
      assert.deepStrictEqual(led.map(({ role }) => role), ["system", "user"])
      assert.match(String(led[0]?.content), /^Be kind\.\n\nBe brief\.\n\n# Tools/)
      for (const field of ["tools", "tool_choice", "parallel_tool_calls"]) {
        assert.notProperty(bodyOf({ tools, toolChoice: { _tag: "Required" } }, "prompt"), field)
      }
    })

    it("have calls and results as text, and roles take turns", () => {
      const messages = ask([
        user(Text("Go")),
        assistant(Text("Well."), call("a")),
        assistant(call("b")),
        result("a", Text("one"), image),
        result("b", Text("two")),
        user(Text("And?")),
        system("Call one.")
      ])
      assert.deepStrictEqual(messages.map(({ role }) => role), ["system", "user", "assistant", "user"])
      const written = renderCall({ name: "f", arguments: "{\"a\":1}" })
      assert.strictEqual(messages[2]?.content, `Well.\n\n${written}\n\n${written}`)
      const last = messages[3]?.content
      assert(Array.isArray(last))
      assert.deepStrictEqual(
        last.map((part: { type: string; text?: string }) => part.text?.slice(0, 12) ?? part.type),
        [
          "<tool_result",
          "image_url",
          "<tool_result",
          "And?",
          "Call one."
        ]
      )
    })

    it("disarm what a caller quotes, as long as there is something to guard", () => {
      const quoted = "<tool_call>{}</tool_call>"
      assert.notInclude(String(ask([user(Text(quoted))])[1]?.content), "<tool_call>")
      assert.strictEqual(messagesOf([user(Text(quoted))], "prompt")[0]?.content, quoted)
    })

    it("are spoken of as text after they are gone", () => {
      const messages = messagesOf([user(Text("Go")), assistant(call("a")), result("a", Text("one"))], "prompt")
      assert.deepStrictEqual(messages.map(({ role }) => role), ["user", "assistant", "user"])
    })
  })
})
