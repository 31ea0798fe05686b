/**
 * Replies of the upstream as scripts, and what they are: the table that all styles are held to.
 */
import type { Written } from "../support/sameReply.ts"
import type { Ask, Block } from "../support/styleClients.ts"
import { callOslo, callRome, citySchema, lines, tools } from "./support.ts"

export const text = (text: string): Block => ({ _tag: "Text", text })
export const reasoning = (text: string): Block => ({ _tag: "Reasoning", text })
const call = (name: string, args: { readonly [key: string]: string }): Block => ({
  _tag: "Call",
  name,
  arguments: args
})
export const oslo = call("get_weather", { city: "Oslo" })
export const rome = call("get_time", { city: "Rome" })
export const cutOff = (name: string, args: string) => ({ _tag: "CutOff", call: { name, arguments: args } }) as const

const givenUsage = `!usage {"prompt_tokens":90,"completion_tokens":50,"reasoning_tokens":20}`
/** Begins a call and ends in its arguments. */
const cutCall = `!say "\\u003ctool_call\\u003e{\\"name\\":\\"get_time\\",\\"arguments\\":{\\"city\\":\\"Ro"`

export interface Row extends Written {
  readonly name: string
  readonly ask: Ask
}

const row = (
  name: string,
  content: string,
  pieces: Row["pieces"],
  { finish = "stop", ...ask }: Partial<Ask> & Partial<Pick<Row, "finish">> = {}
): Row => ({ name, ask: { content, ...ask }, pieces, finish })

export const replies: ReadonlyArray<Row> = [
  row("text", "!say Hello there", [text("Hello there")]),
  row("text that looks like markup where no tools are", `${callOslo}\n!say {"a":1}`, [
    text(`<tool_call>{"name":"get_weather","arguments":{"city":"Oslo"}}</tool_call>{"a":1}`)
  ]),
  row("text of blanks", `!say "  \\n"`, [text("  \n")]),
  row("text that is cut inside its characters", "!chunk 1 units\n!say 🌍 東京 é", [text("🌍 東京 é")]),
  row("text with every character that JSON escapes", `!say "\\u0000\\u001f\\u2028\\"\\\\/\\n\\r\\t\\u007f"`, [
    text("\u0000\u001f\u2028\"\\/\n\r\t\u007f")
  ]),
  row("half a surrogate pair", `!say "a\\ud83cb"`, [text("a\ud83cb")]),
  row("reasoning and text", "!think Two and\n!think [\" two\",\" is\"]\n!say Four.", [
    reasoning("Two and two is"),
    text("Four.")
  ], { reasoner: true }),
  row("reasoning alone", "!think Hm.", [reasoning("Hm.")], { reasoner: true }),
  row("reasoning between text", "!think A\n!say B\n!think C\n!say D", [
    reasoning("A"),
    text("B"),
    reasoning("C"),
    text("D")
  ], { reasoner: true }),
  row("a call", callOslo, [oslo], { tools, finish: "tool_calls" }),
  row("a call without arguments", "!call get_time {}", [call("get_time", {})], { tools, finish: "tool_calls" }),
  row("a call of a tool that is not declared", `!call wx {"a":"b"}`, [call("wx", { a: "b" })], {
    tools,
    finish: "tool_calls"
  }),
  row("several calls with text around", lines("!say Looking. ", callOslo, "!say  And: ", callRome, "!say Done."), [
    text("Looking."),
    oslo,
    text("And:"),
    rome,
    text("Done.")
  ], { tools, finish: "tool_calls" }),
  row("several calls with blanks between", lines(callOslo, `!say "\\n\\n"`, callRome), [oslo, text("\n\n"), rome], {
    tools,
    finish: "tool_calls"
  }),
  row("reasoning, text and a call", lines("!think Hm.", "!say Let me look.", callOslo), [
    reasoning("Hm."),
    text("Let me look."),
    oslo
  ], { tools, reasoner: true, finish: "tool_calls" }),
  row(
    "a call at the end of reasoning that nothing follows",
    `!think "Hm. ${"\\u003ctool_call\\u003e{\\\"name\\\":\\\"get_time\\\",\\\"arguments\\\":{}}\\u003c/tool_call\\u003e"}"`,
    [
      reasoning(`Hm. <tool_call>{"name":"get_time","arguments":{}}</tool_call>`),
      call("get_time", {})
    ],
    { tools, reasoner: true, finish: "tool_calls" }
  ),
  row("calls that were ruled out", callOslo, [
    text(`<tool_call>{"name":"get_weather","arguments":{"city":"Oslo"}}</tool_call>`)
  ], { tools, toolChoice: "none" }),
  row("a call that is demanded, without the text before it", lines("!say Well. ", callOslo), [text("Well."), oslo], {
    tools,
    toolChoice: "required",
    finish: "tool_calls"
  }),
  // Content generation declares just the one, so that the prompt's tokens are others.
  row("the one call that is demanded", lines(givenUsage, callOslo, callRome), [rome], {
    tools,
    toolChoice: { name: "get_time" },
    finish: "tool_calls"
  }),
  row("a call that is cut off", lines("!say Looking. ", cutCall), [
    text("Looking."),
    cutOff("get_time", `{"city":"Ro`)
  ], { tools, finish: "length" }),
  row("a whole call and one that is cut off", lines("!say Looking. ", callOslo, cutCall), [
    text("Looking."),
    oslo,
    cutOff("get_time", `{"city":"Ro`)
  ], { tools, finish: "length" }),
  row("text that is cut off for good", "!fault endless-incomplete\n!say -", [
    text(Array.from({ length: 17 }, (_, i) => `${i} `).join(""))
  ], { finish: "length" }),
  row("text that is cut and goes on", "!cut 3 snapshot\n!count 8", [text("1 2 3 4 5 6 7 8")]),
  row("text that breaks off and goes on", "!count 8\n!fault reset-mid-stream after=3", [text("1 2 3 4 5 6 7 8")]),
  row("a stop sequence", `!say ["one E","N","D two"]`, [text("one ")], { stop: ["x", "END"], finish: "stop_sequence" }),
  row("the beginning of a stop sequence", "!say one EN", [text("one EN")], { stop: ["END"] }),
  row("a stop sequence at the very start", "!say END two", [], { stop: ["END"], finish: "stop_sequence" }),
  row("a stop sequence in a call's arguments", `!call get_time {"city":"END"}`, [call("get_time", { city: "END" })], {
    tools,
    stop: ["END"],
    finish: "tool_calls"
  }),
  row("a stop sequence after a call", lines(callOslo, "!say Now END and on"), [oslo, text("Now ")], {
    tools,
    stop: ["END"],
    finish: "tool_calls"
  }),
  row("structured output, which the SDKs parse", `!say {"city":"Oslo"}`, [text(`{"city":"Oslo"}`)], {
    schema: citySchema
  }),
  row("a reply that is withdrawn when it has begun", "!count 5\n!fault content-filter after=3", [text("1 2 3")], {
    finish: "content_filter"
  }),
  row("a reply that is withdrawn behind a call", lines(callOslo, "!say And then\n!fault content-filter"), [
    oslo,
    text("And then")
  ], { tools, finish: "content_filter" })
]
