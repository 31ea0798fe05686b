/** Properties of the sieve for generated text. `replyOf` (`support.ts`) checks the protocol of every run. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { ToolDeclaration } from "../../src/domain/Conversation.ts"
import { type SieveEvent, TextDelta } from "../../src/domain/ReplyEvent.ts"
import { Engine } from "../../src/sieve/engine.ts"
import { forms } from "../../src/sieve/forms/table.ts"
import { grammarOf } from "../../src/sieve/openings.ts"
import { sieve } from "../../src/sieve/sieve.ts"
import { runs } from "../support/effort.ts"
import { callId, callsOf, cutAtRandom, feed, readCases, replyOf, seeded, textOf, tools } from "./support.ts"

const grammar = grammarOf(forms)

/** Pieces of every form's markup, of code and data around it, and of malformed text. */
const fragments = [
  ..."<>{}[]()|/=\"'\\:,;`~#&!-_ \n\r\t".split(""),
  "```",
  "~~~",
  "````",
  "\n\n",
  "```json\n",
  "\n```\n",
  "<![CDATA[",
  "]]>",
  "&amp;",
  "&lt",
  "\ud83d",
  "\ude00",
  "🌍",
  "＜",
  "｜",
  "▁",
  "<tool_call>",
  "</tool_call>",
  "<tool_calls>",
  "</tool_calls>",
  "<function_calls>",
  "<invoke name=\"wx\">",
  "</invoke>",
  "<invoke",
  "<parameter name=\"city\">",
  "<parameter=city>",
  "</parameter>",
  "<function=wx>",
  "</function>",
  "<name>",
  "wx",
  "</name>",
  "<arguments>",
  "</arguments>",
  "<tool_use>",
  "</tool_use>",
  "<wx>",
  "<wx city=\"Oslo\"/>",
  "</wx>",
  "<city>",
  "</city>",
  "<arg_key>",
  "</arg_key>",
  "<arg_value>",
  "</arg_value>",
  "<item>",
  "</item>",
  "<｜DSML｜invoke name=\"wx\">",
  "</｜DSML｜invoke>",
  "<｜DSML｜parameter name=\"city\" string=\"true\">",
  "</｜DSML｜parameter>",
  "<｜tool▁calls▁begin｜>",
  "<｜tool▁call▁begin｜>",
  "<｜tool▁sep｜>",
  "<｜tool▁call▁end｜>",
  "<｜tool▁calls▁end｜>",
  "<|tool_calls_section_begin|>",
  "<|tool_call_begin|>",
  "<|tool_call_argument_begin|>",
  "<|tool_call_end|>",
  "functions.wx:0",
  "[TOOL_CALLS]",
  "[ARGS]",
  "<|python_tag|>",
  "<|action_start|>",
  "<|plugin|>",
  "<|action_end|>",
  "<|channel|>",
  "commentary to=functions.wx",
  "<|message|>",
  "<|call|>",
  "<|start|>",
  "<|START_ACTION|>",
  "<|END_ACTION|>",
  "<|END_THINKING|>",
  "\"tool_name\":\"wx\",\"parameters\":",
  "<|tool_call_start|>",
  "<TOOLCALL>",
  "</TOOLCALL>",
  "<|tool_call|>",
  "<|/tool_call|>",
  "\nfunctools[",
  "<start_function_call>",
  "call:wx{city:",
  "<escape>",
  "<esc",
  "<end_function_call>",
  "<start_function_response>",
  "\n```tool_code\n",
  "\n````tool_code\n",
  "\ntool_code\n",
  "print(",
  "default_api.wx(",
  "t()",
  "\"\"",
  "[wx(",
  "city=",
  "'Oslo'",
  ")]",
  "function.name: wx\n",
  "function.arguments: ",
  "Action: wx\n",
  "Action Input: ",
  "{\"tool_calls\":[",
  "{\"name\":\"wx\",\"arguments\":",
  "{\"name\":\"nope\",\"arguments\":",
  "\"function\":{",
  "{\"function_call\":{",
  "\"name\":\"wx\"",
  "\"arguments\":",
  "\"input\":",
  "{\"city\":\"Oslo\"}",
  "\"{\\\"city\\\":\\\"Oslo\\\"}\"",
  "{\"city\":",
  "\"Oslo",
  "\\n",
  "\\u00e9",
  "true",
  "null",
  "-1.5e3",
  "]}",
  "}}",
  "},",
  "role",
  "{\"role\":",
  "tool_calls",
  "Oslo",
  "text "
]

const text = fc.array(fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...fragments) }, fc.string({ maxLength: 4 })), {
  maxLength: 40
}).map((parts) => parts.join(""))

const isSubsequence = (part: string, whole: string): boolean => {
  let at = 0
  for (const unit of part.split("")) {
    at = whole.indexOf(unit, at) + 1
    if (at === 0) return false
  }
  return true
}

describe("the sieve, for any text", () => {
  it("emits the same reply in every cut, and only characters of the text", () => {
    fc.assert(
      fc.property(text, fc.integer(), (text, seed) => {
        const whole = replyOf(feed([text]))
        const random = seeded(seed)
        assert.deepStrictEqual(replyOf(feed(text.split(""))), whole)
        for (let i = 0; i < 4; i++) assert.deepStrictEqual(replyOf(feed(cutAtRandom(text, random))), whole)
        assert.isTrue(isSubsequence(textOf(whole), text))
        if (callsOf(whole).length === 0) assert.strictEqual(textOf(whole), text)
      }),
      { numRuns: runs(4000) }
    )
  })

  it("emits the same reply in every cut of corrupted corpus texts", () => {
    const texts = ["families", "details", "noCalls"].flatMap((file) => readCases(file).map((test) => test.text))
    const edit = fc.record({
      at: fc.double({ min: 0, max: 1, noNaN: true }),
      drop: fc.nat(8),
      put: fc.oneof(fc.constant(""), fc.constantFrom(...fragments))
    })
    fc.assert(
      fc.property(
        fc.constantFrom(...texts),
        fc.array(edit, { minLength: 1, maxLength: 3 }),
        fc.integer(),
        (text, edits, seed) => {
          const spoiled = edits.reduce((text, { at, drop, put }) => {
            const from = Math.floor(at * text.length)
            return text.slice(0, from) + put + text.slice(from + drop)
          }, text)
          const whole = replyOf(feed([spoiled]))
          const random = seeded(seed)
          assert.deepStrictEqual(replyOf(feed(spoiled.split(""))), whole)
          assert.deepStrictEqual(replyOf(feed(cutAtRandom(spoiled, random))), whole)
          assert.isTrue(isSubsequence(textOf(whole), spoiled))
        }
      ),
      { numRuns: runs(4000) }
    )
  })

  it("emits the same through passes() as through push()", () => {
    fc.assert(
      fc.property(text, fc.integer(), (text, seed) => {
        const chunks = cutAtRandom(text, seeded(seed))
        const machine = sieve({ tools, callId })()
        const out: Array<SieveEvent> = []
        for (const chunk of chunks) if (machine.passes(chunk, out) && chunk !== "") out.push(TextDelta(chunk))
        machine.end(out)
        assert.deepStrictEqual(out, feed(chunks))
      }),
      { numRuns: runs(1000) }
    )
  })

  it("passes every character without declared tools", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...fragments), { maxLength: 40 }), (parts) => {
        assert.deepStrictEqual(
          feed(parts, []).map((event) => event._tag === "TextDelta" ? event.text : event._tag),
          parts.filter((part) => part !== "")
        )
      }),
      { numRuns: runs(500) }
    )
  })

  it("recognizes a complete call between any two texts", () => {
    const call = "<tool_call>\n{\"name\": \"t\", \"arguments\": {\"z\": 1}}\n</tool_call>"
    // Only code, data or an open call hide a call in a paragraph of its own.
    const before = text.filter((before) => {
      const items = replyOf(feed([before + "\n\n", call]))
      return textOf(items) === before + "\n\n"
    })
    fc.assert(
      fc.property(before, text, (before, after) => {
        const items = replyOf(feed([before, "\n\n", call, after]))
        assert.deepStrictEqual(items.slice(0, 2), [
          before + "\n\n",
          { name: "t", arguments: "{\"z\": 1}", isFinished: true }
        ])
      }),
      { numRuns: runs(500) }
    )
  })
})

describe("the sieve, for prose", () => {
  it("emits each character in the step in which it arrives", () => {
    const engine = feedByUnit("The quick brown fox, 3 * 4 = 12; jumps.\nOver (the) lazy dog's \"back\" - really!\n")
    assert.strictEqual(engine.delay, 0)
  })
})

/** Feeds one unit at a time and returns the longest delay of a character, in units. */
const feedByUnit = (text: string, declared: ReadonlyArray<ToolDeclaration> = tools): { readonly delay: number } => {
  const machine = new Engine(grammar, new Map(declared.map((tool) => [tool.name, tool])), String)
  let left = 0
  let delay = 0
  for (let i = 0; i < text.length; i++) {
    const out: Array<SieveEvent> = []
    machine.push(text.charAt(i), out)
    for (const event of out) {
      if (event._tag !== "TextDelta") throw new Error(`a call in ${text}`)
      left += event.text.length
    }
    delay = Math.max(delay, i + 1 - left)
  }
  return { delay }
}

/** For each form, beginnings that stay undecided when blanks or an endless name follow. */
const beginnings: { readonly [form: string]: ReadonlyArray<string> } = {
  "JSON object": [
    "{",
    "{\"",
    "{\"tool_calls\":[{\"name\":\"",
    "{\"name\":\"wx\",",
    "{\"id\":\"",
    "{\"function_call\":{\"name\":\"wx\""
  ],
  "JSON list": ["[", "[{\"name\":\"", "[{\"name\":\"wx\",\"id\":\""],
  "wrapper tag": ["<tool_calls>", "<tool_calls><invoke name=\"", "<tool_calls><tool_call>{\"name\":\""],
  "tool_call tag": ["<tool_call>", "<tool_call>{\"name\":\"", "<tool_call>wx", "<tool_call><name>", "<tool_call x=\""],
  "function tag": ["<function=", "<function=wx>", "<function_call>{\"name\": \"wx\""],
  "invoke tag": ["<invoke name=\"", "<invoke name=\"wx\">", "<invoke ", "<｜DSML｜invoke name=\"wx\">"],
  "tool_use tag": ["<tool_use>", "<tool_use><name>", "<tool_use><name>wx</name>"],
  "call tokens": [
    "<｜tool▁call▁begin｜>",
    "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
    "<|tool_calls_section_begin|>"
  ],
  python_tag: ["<|python_tag|>", "<|python_tag|>{\"name\": \""],
  action_start: ["<|action_start|>", "<|action_start|><|plugin|>{\"name\": \""],
  START_ACTION: ["<|START_ACTION|>", "<|START_ACTION|>[{\"tool_name\":\"", "<|END_THINKING|>"],
  tool_call_start: ["<|tool_call_start|>", "<|tool_call_start|>[wx(", "<|tool_call_start|>[{\"name\":\""],
  harmony: ["<|channel|>", "<|channel|>commentary to=functions.", "<|start|>"],
  start_function_call: [
    "<start_function_call>",
    "<start_function_call>call:",
    "<start_function_call>call:wx{city",
    "<start_function_call>call:wx{\""
  ],
  "[TOOL_CALLS]": ["[TOOL_CALLS]", "[TOOL_CALLS]wx", "[TOOL_CALLS][{\"name\": \""],
  pythonic: ["[wx(", "[wx(city", "[wx(city="],
  tool_code: [
    "`".repeat(600),
    "```tool_code",
    "```tool_code\n",
    "```tool_code\nwx(",
    "~~~tool_code\nprint(wx(city",
    "```tool_code\n[{\"name\":\""
  ],
  "bare tool_code": ["tool_code", "tool_code\n", "tool_code\nprint(", "tool_code\nwx(city="],
  functools: ["functools[", "functools[{\"name\":\""],
  "function.name": ["function.name:", "function.name: wx\n"],
  Action: ["Action:", "Action: wx\n"],
  "tool-named tag": ["<wx ", "<wx city=\"", "<wx>"]
}

describe("an undecided form of the sieve", () => {
  for (const form of forms) {
    it(`is held no longer than its bound: ${form.name}`, () => {
      const started = beginnings[form.name] ?? []
      assert.isAbove(started.length, 0)
      for (const begun of started) {
        for (const filling of ["x", " ", "x y ", "\n"]) {
          const { delay } = feedByUnit(begun + filling.repeat(Math.ceil(6000 / filling.length)))
          assert.isAtMost(delay, form.bound, JSON.stringify(begun + filling))
        }
      }
    })
  }

  it("leaves as text at the end of the reply", () => {
    for (const begun of Object.values(beginnings).flat()) assert.deepStrictEqual(replyOf(feed([begun])), [begun])
  })
})

describe("a call in the sieve", () => {
  it("starts before its arguments, which are emitted as they arrive", () => {
    const machine = new Engine(grammar, new Map(tools.map((tool) => [tool.name, tool])), String)
    const tagsOf = (text: string): ReadonlyArray<string> => {
      const out: Array<SieveEvent> = []
      machine.push(text, out)
      return out.map((event) => event._tag === "CallArguments" ? event.delta : event._tag)
    }
    assert.deepStrictEqual(tagsOf("{\"tool_calls\":[{\"name\":\"wx\",\"input\":"), [])
    assert.deepStrictEqual(tagsOf("{"), ["CallStarted", "{"])
    assert.deepStrictEqual(tagsOf("\"city\":\"Os"), ["\"city\":\"Os"])
    assert.deepStrictEqual(tagsOf("lo\"}"), ["lo\"}", "CallFinished"])
    assert.deepStrictEqual(tagsOf("}]}"), [])
    assert.deepStrictEqual(tagsOf("<invoke name=\"wx\"><parameter name=\"city\">"), ["CallStarted", "{\"city\":"])
    assert.deepStrictEqual(tagsOf("Os"), ["\"Os"])
    assert.deepStrictEqual(tagsOf("lo &amp"), ["lo "])
    assert.deepStrictEqual(tagsOf("; </parameter><parameter name=\"days\">1"), ["& \",\"days\":"])
    assert.deepStrictEqual(tagsOf("2</parameter></invoke>"), ["12}", "CallFinished"])
    assert.deepStrictEqual(tagsOf("<invoke name=\"free\"><parameter name=\"a\">w"), ["CallStarted", "{\"a\":\"w"])
    assert.deepStrictEqual(tagsOf("x"), ["x"])
  })

  it("starts with its first argument in a block of code that is a form", () => {
    const machine = sieve({ tools, callId })()
    const eventsOf = (text: string): ReadonlyArray<string> => {
      const out: Array<SieveEvent> = []
      machine.push(text, out)
      return out.map((event) =>
        event._tag === "CallArguments" ? event.delta : event._tag === "TextDelta" ? event.text : event._tag
      )
    }
    assert.deepStrictEqual(eventsOf("```tool_code\n"), [])
    assert.deepStrictEqual(eventsOf("print(default_api.wx(city="), [])
    assert.deepStrictEqual(eventsOf("'Os"), ["CallStarted", "{\"city\":\"Os"])
    assert.deepStrictEqual(eventsOf("lo'"), ["lo\""])
    assert.deepStrictEqual(eventsOf("))"), ["}", "CallFinished"])
    assert.deepStrictEqual(eventsOf("\n``"), [])
    assert.deepStrictEqual(eventsOf("`\nDone"), ["\nDone"])
    assert.deepStrictEqual(eventsOf("."), ["."])
  })
})
