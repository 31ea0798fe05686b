import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { readFileSync } from "node:fs"
import { readPrompt } from "../../src/contracts/session/writeRequest.ts"
import * as Prompt from "../../src/contracts/session/writeRequest.ts"
import {
  type Conversation,
  plainConversation,
  Text,
  type ToolDeclaration,
  type Turn
} from "../../src/domain/Conversation.ts"
import { runSync } from "../../src/domain/stream/cooperative.ts"
import type { Step } from "../../src/testing/provider/Call.ts"
import { callForms } from "../../src/testing/provider/callForms.ts"
import { nextCut, type Reply } from "../../src/testing/provider/Reply.ts"
import { draftRound, type Round } from "../../src/testing/provider/round.ts"
import { replyTo, scriptTable } from "../../src/testing/provider/script.ts"
import { writeStream } from "../../src/testing/provider/wire.ts"
import { makeInterpreter, type Patch } from "../upstream/session/wholeDocument.ts"
import { promptOf } from "./client.ts"

const renderPrompt = (of: Conversation) => runSync(Prompt.renderPrompt(of))

const settings = { pace: undefined, burst: 1 }
const ids = { request: 1, response: 2 }

const replyOf = (
  prompt: string,
  { earlier = [], search = false, thinking = false }: {
    readonly thinking?: boolean
    readonly search?: boolean
    readonly earlier?: ReturnType<typeof readPrompt>
  } = {}
): Reply => replyTo({ prompt, thinking, search, earlier }, settings)

const scripted = (script: string, flags: { readonly thinking?: boolean; readonly search?: boolean } = {}): Reply =>
  replyOf(promptOf(script), flags)

const textOf = (reply: Reply, tag: "Say" | "Think" = "Say"): string =>
  reply.pieces.map((piece) => piece._tag === tag ? piece.text : "").join("")

const bytesOf = (steps: ReadonlyArray<Step>): string =>
  Buffer.concat(steps.flatMap((step) => step._tag === "Chunk" ? [step.bytes] : [])).toString()

const firstRound: Round = { start: "first", from: 0 }

const streamOf = (reply: Reply): string => bytesOf(writeStream(draftRound(reply, ids, firstRound), reply))

/** All rounds of a reply as an interpreter of the whole document understands them. */
const interpret = (reply: Reply) => {
  const interpreter = makeInterpreter()
  let round: Round = firstRound
  for (let i = 0; i < 200; i++) {
    interpreter.startRound()
    for (const item of draftRound(reply, ids, round).items) {
      if (item._tag !== "Event" || item.event !== undefined) continue
      const patch: Patch = JSON.parse(item.data)
      interpreter.apply(patch)
    }
    const cut = nextCut(reply, round.from)
    if (cut === undefined) return interpreter.result
    assert.strictEqual(interpreter.result.status, reply.cuts.status)
    round = { start: reply.cuts.restart, from: cut }
  }
  return assert.fail("the reply never ends")
}

describe("a stream", () => {
  it("is the protocol page's example, byte for byte", () => {
    const expected = readFileSync(new URL("../fixtures/session/example.sse", import.meta.url), "utf8")
    const reply = scripted(
      "!think [\"Two\", \" and two\", \" make\", \" four.\"]\n!say [\"4\", \".\"]\n!usage 41",
      { thinking: true }
    )
    assert.strictEqual(streamOf(reply), expected)
  })

  it("means what its pieces say, in every shape, however it is cut off and continued", () => {
    const piece = fc.record({
      _tag: fc.constantFrom("Think" as const, "Say" as const),
      text: fc.string({ unit: "grapheme", maxLength: 5 }),
      wait: fc.constant(0)
    })
    const other = fc.record({
      _tag: fc.constant("Fragment" as const),
      type: fc.constantFrom("TIP", "TOOL_OPEN"),
      fields: fc.constant({ content: "no" }),
      wait: fc.constant(0)
    })
    const generated = fc.record({
      pieces: fc.array(fc.oneof({ weight: 5, arbitrary: piece }, { weight: 1, arbitrary: other }), { maxLength: 12 }),
      shape: fc.constantFrom("new" as const, "old" as const),
      every: fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined }),
      at: fc.array(fc.integer({ min: 1, max: 11 }), { maxLength: 2 }),
      restart: fc.constantFrom("snapshot" as const, "empty" as const, "none" as const),
      status: fc.constantFrom("INCOMPLETE" as const, "AUTO_CONTINUE" as const),
      usage: fc.constantFrom("accumulated" as const, "running" as const, "total" as const, "parts" as const)
    })
    fc.assert(fc.property(generated, ({ at, every, pieces, restart, shape, status, usage }) => {
      const reply: Reply = {
        pieces,
        shape,
        usage: { _tag: "Computed", form: usage },
        cuts: { at: new Set(at), every, restart, status },
        pace: undefined,
        burst: 1,
        faults: [],
        thinking: true,
        search: false,
        promptTokens: 3
      }
      const result = interpret(reply)
      assert.strictEqual(result.text, textOf(reply))
      assert.strictEqual(result.reasoning, textOf(reply, "Think"))
      assert.strictEqual(result.status, "FINISHED")
    }))
  })

  it("gives token counts in the form that is asked for", () => {
    const last = (usage: string) => {
      const lines = streamOf(scripted(`!say one two three\n!usage ${usage}`)).split("\n")
      return lines.filter((line) => line.includes("token_usage")).map((line) => line.slice("data: ".length)).at(-1) ??
        ""
    }
    assert.include(last("accumulated"), "{\"p\":\"accumulated_token_usage\",\"v\":3}")
    assert.include(last("running"), "{\"p\":\"accumulated_token_usage\",\"v\":3}")
    assert.include(last("total"), "{\"p\":\"token_usage\",\"v\":3}")
    assert.match(last("parts"), /"token_usage","v":\{"prompt_tokens":\d+,"completion_tokens":3,"reasoning_tokens":0\}/)
    assert.match(last("both"), /"token_usage".*"accumulated_token_usage","v":1003/)
    assert.include(last("{\"completion_tokens\":9}"), "\"v\":{\"completion_tokens\":9}")
    assert.include(last("zero"), "\"accumulated_token_usage\":0")
    assert.strictEqual(last("none"), "")
  })

  it("leaves several events at a time where that is asked for", () => {
    const chunks = (script: string) => {
      const reply = scripted(script)
      return writeStream(draftRound(reply, ids, firstRound), reply).filter((step) => step._tag === "Chunk").length
    }
    assert.strictEqual(chunks("!count 20"), 24)
    assert.strictEqual(chunks("!burst 8\n!count 20"), 3)
  })

  it("waits before each piece, and at each `!wait`", () => {
    const reply = scripted("!pace 20ms\n!say [\"a\",\"b\"]\n!wait 1s\n!say c")
    const waits = writeStream(draftRound(reply, ids, firstRound), reply).flatMap((step) =>
      step._tag === "Wait" ? [step.millis] : []
    )
    assert.deepStrictEqual(waits, [20, 20, 1020])
  })
})

describe("a script", () => {
  it("says the script's text, as text, as a JSON string or piece by piece", () => {
    assert.strictEqual(textOf(scripted("!say Hello there")), "Hello there")
    assert.strictEqual(textOf(scripted("!say \"two\\nlines\"")), "two\nlines")
    assert.deepStrictEqual(
      scripted("!say [\"a b\",\"\",\"c\"]").pieces.map((piece) => piece._tag === "Say" ? piece.text : undefined),
      ["a b", "", "c"]
    )
    assert.strictEqual(textOf(scripted("!say [not JSON]")), "[not JSON]")
    assert.strictEqual(textOf(scripted("!repeat 3 ab")), "ababab")
    assert.strictEqual(textOf(scripted("!count 4")), "1 2 3 4")
  })

  it("reasons for reasoning models, and keeps the order of the pieces", () => {
    const script = "!think Hm.\n!say One\n!think Oh.\n!say Two"
    assert.deepStrictEqual(
      scripted(script, { thinking: true }).pieces.map((piece) => piece._tag),
      ["Think", "Say", "Think", "Say"]
    )
    assert.deepStrictEqual(scripted(script).pieces.map((piece) => piece._tag), ["Say", "Say"])
  })

  it("cuts text into pieces without losing any of it", () => {
    const pieces = (script: string) => scripted(script).pieces.map((piece) => piece._tag === "Say" ? piece.text : "")
    assert.deepStrictEqual(pieces("!chunk 2\n!say abcde"), ["ab", "cd", "e"])
    assert.deepStrictEqual(pieces("!chunk 1\n!say a🌍"), ["a", "🌍"])
    assert.deepStrictEqual(pieces("!chunk 1 units\n!say a🌍"), ["a", "\ud83c", "\udf0d"])
    assert.deepStrictEqual(pieces("!chunk whole\n!say a b"), ["a b"])
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.constantFrom("3", "2 units", "words", "whole"), (text, how) => {
        assert.strictEqual(pieces(`!chunk ${how}\n!say ${JSON.stringify(text)}`).join(""), text)
      })
    )
  })

  it("answers the question where it only says how", () => {
    const reply = scripted("!shape old\nIs anybody there?")
    assert.strictEqual(reply.shape, "old")
    assert.include(textOf(reply), "You said: “Is anybody there?”")
  })

  it("echoes the whole prompt", () => {
    const prompt = `<|system|>\nBe brief.\n${promptOf("!echo-prompt")}`
    assert.strictEqual(textOf(replyOf(prompt)), prompt)
  })

  it("writes calls in the form of a family", () => {
    for (const form of Object.keys(callForms)) {
      const text = textOf(scripted(`!call form=${form} wx {"city":"Oslo","days":2}`))
      assert.include(text, "wx")
      assert.include(text, "Oslo")
    }
    assert.strictEqual(
      textOf(scripted("!call wx {\"city\": \"Oslo\"}")),
      "<tool_call>{\"name\":\"wx\",\"arguments\":{\"city\": \"Oslo\"}}</tool_call>"
    )
    assert.strictEqual(textOf(scripted("!call wx")), "<tool_call>{\"name\":\"wx\",\"arguments\":{}}</tool_call>")
  })

  it("goes on behind `!next` once a tool has replied", () => {
    const script = "<|user|>\n!call a\n!next\n!call b\n!next\n!say done\n"
    const reply = (tools: number) =>
      textOf(replyOf(`${script}${"<|assistant|>\ncall<|end|>\n<|tool|>\n7\n".repeat(tools)}<|assistant|>`))
    assert.include(reply(0), "\"a\"")
    assert.include(reply(1), "\"b\"")
    assert.strictEqual(reply(2), "done")
    assert.include(reply(3), "“7”")
  })

  it("answers with its mistakes", () => {
    const mistakes = [
      "!pace soon",
      "!count many",
      "!chunk 0",
      "!usage maybe",
      "!shape round",
      "!fault nonsense",
      "!fault hint after",
      "!fault hint after=soon",
      "!fault hint afer=2",
      "!repeat 100000 " + "x".repeat(1000),
      "!count 100000\n!count 100000\n!count 1",
      "!fault disagree call=completion",
      "!fault busy call=login",
      "!call form=none wx {}",
      "!call wx [1]",
      "!cut whenever"
    ]
    for (const mistake of mistakes) {
      const line = mistake.split("\n").at(-1)
      assert.include(textOf(scripted(mistake)), `mistake: \`${line}\``, mistake)
    }
  })

  it("leaves lines alone that only look like directives", () => {
    assert.include(textOf(scripted("!important: read this")), "!important: read this")
    assert.include(textOf(scripted("!SAY nothing")), "!SAY nothing")
  })

  it("is explained, each directive by an example of its syntax", () => {
    for (const { about, syntax } of scriptTable) {
      assert.match(syntax, /^![a-z-]+/)
      assert.notStrictEqual(about, "")
    }
  })
})

const wx: ToolDeclaration = {
  name: "get_weather",
  description: "Weather now",
  parameters: {
    type: "object",
    properties: { city: { type: "string" }, days: { type: "integer" }, unit: { enum: ["C", "F"] } },
    required: ["city", "days", "unit"]
  },
  strict: undefined
}
const clock: ToolDeclaration = { name: "clock", description: undefined, parameters: undefined, strict: undefined }

const conversation = (turns: ReadonlyArray<Turn>, rest: Partial<Conversation> = {}): Conversation => ({
  ...plainConversation,
  turns,
  tools: [wx, clock],
  ...rest
})

const user = (text: string): Turn => ({ role: "user", parts: [Text(text)] })

const answerTo = (turns: ReadonlyArray<Turn>, rest: Partial<Conversation> = {}): string =>
  textOf(replyOf(renderPrompt(conversation(turns, rest))))

const callsIn = (text: string): ReadonlyArray<unknown> =>
  [...text.matchAll(/<tool_call>(.*)<\/tool_call>/g)].map((match) => JSON.parse(match[1]!))

describe("an answer without a script", () => {
  it("knows the earlier turns, of the prompt and of the session", () => {
    const inPrompt = textOf(replyOf("<|user|>\nOne\n<|assistant|>\nHi<|end|>\n<|user|>\nTwo\n<|assistant|>"))
    assert.include(inPrompt, "This is turn 2 of our conversation; before it you said: “One”")
    const inSession = textOf(replyOf(promptOf("Two"), { earlier: readPrompt(promptOf("One")) }))
    assert.strictEqual(inSession, inPrompt)
  })

  it("searches for the models that do, and cites what it found", () => {
    const reply = replyOf(promptOf("cats"), { search: true })
    assert.match(textOf(reply), /\[citation:1\].*\[reference:1\]/)
    assert.deepStrictEqual(
      reply.pieces.flatMap((piece) => piece._tag === "Fragment" ? [piece.type] : []),
      ["TOOL_SEARCH", "TOOL_OPEN"]
    )
  })

  it("calls the tool that the question names, with arguments that fit its schema", () => {
    const text = answerTo([user("Please use get_weather for Oslo, 3 days.")])
    assert.deepStrictEqual(callsIn(text), [
      { name: "get_weather", arguments: { city: "Oslo, 3 days", days: 3, unit: "C" } }
    ])
    assert.deepStrictEqual(callsIn(answerTo([user("Nice weather today, clockwork!")])), [])
  })

  it("calls several tools where that is allowed", () => {
    const turns = [user("Use clock and then get_weather for Rome")]
    assert.lengthOf(callsIn(answerTo(turns)), 2)
    assert.deepStrictEqual(callsIn(answerTo(turns, { parallelToolCalls: false })), [{ name: "clock", arguments: {} }])
  })

  it("calls a tool when it must", () => {
    const turns = [user("Hello")]
    assert.deepStrictEqual(callsIn(answerTo(turns, { toolChoice: { _tag: "Function", name: "clock" } })), [
      { name: "clock", arguments: {} }
    ])
    assert.deepStrictEqual(callsIn(answerTo(turns, { toolChoice: { _tag: "Required" } })), [
      { name: "get_weather", arguments: { city: "Hello", days: 1, unit: "C" } }
    ])
  })

  it("passes on what the tools answered", () => {
    const text = answerTo([
      user("Use get_weather for Oslo"),
      {
        role: "assistant",
        parts: [{
          _tag: "Call",
          id: "c1",
          name: "get_weather",
          arguments: "{\"city\":\"Oslo\"}",
          sealed: undefined,
          vendorFields: undefined
        }]
      },
      {
        role: "tool",
        parts: [{
          _tag: "Result",
          callId: "c1",
          name: "get_weather",
          content: [Text("12 degrees")],
          isError: false,
          isNamed: undefined,
          vendorFields: undefined
        }]
      }
    ])
    assert.strictEqual(text, "get_weather answered: “12 degrees”.")
  })

  it("follows the schema of the requested answer", () => {
    const schema = {
      type: "object",
      properties: {
        title: { type: "string" },
        score: { type: "number" },
        tags: { type: "array", items: { type: "string" } }
      },
      required: ["title", "score", "tags"]
    } as const
    const output = { _tag: "JsonSchema", name: "x", description: undefined, schema, strict: true } as const
    assert.deepStrictEqual(JSON.parse(answerTo([user("Rate it 7")], { tools: [], output })), {
      title: "Rate it 7",
      score: 7,
      tags: ["Rate it 7"]
    })
    assert.deepStrictEqual(JSON.parse(answerTo([user("Hello")], { tools: [], output: { _tag: "JsonObject" } })), {
      answer: "Hello"
    })
  })
})
