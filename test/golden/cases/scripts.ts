/**
 * Kinds of reply of the servers that follow a script of the prompt: what is asked, of which styles, and in which ways.
 */
import { callOslo, callRome, lines, tools } from "../../styles/support.ts"
import type { Way } from "../../support/sameReply.ts"
import type { Ask, StyleName } from "../../support/styleClients.ts"

export type Body = { readonly [key: string]: unknown }

export interface Kind {
  readonly name: string
  readonly ask: Ask
  /** All where it is left out. */
  readonly styles?: ReadonlyArray<StyleName>
  /** Both where it is left out. */
  readonly ways?: ReadonlyArray<Way>
  /** Whose key it is: the gateway's own where it is left out; nobody's for `none`. What fails a `caller` is not tried again. */
  readonly key?: "caller" | "none"
  /** Milliseconds that the upstream says nothing first, in which the headers go out. */
  readonly silence?: number
  /** Something else in the request than the SDK puts there. */
  readonly edit?: (body: Body, style: StyleName) => Body
}

const counts = `!usage {"prompt_tokens":90,"completion_tokens":50,"reasoning_tokens":20}`
/** Begins a call and ends in its arguments. */
const cutCall = `!say "\\u003ctool_call\\u003e{\\"name\\":\\"get_time\\",\\"arguments\\":{\\"city\\":\\"Ro"`
const patch = `!call patch {"input":"+a\\n-b"}`

export const kinds: ReadonlyArray<Kind> = [
  { name: "text", ask: { content: `!say ["Hel","lo, ","Zoë.\\n","\\"Bye\\" 🌍"]` } },
  { name: "reasoning", ask: { content: lines(counts, `!think ["Two and"," two."]`, "!say Four."), reasoner: true } },
  { name: "tools", ask: { content: lines("!say Looking. ", callOslo), tools } },
  {
    name: "parallel-calls",
    ask: {
      content: lines("!think Hm.", "!say Looking. ", callOslo, callRome, "!say Done."),
      tools,
      reasoner: true
    }
  },
  { name: "call-without-arguments", ask: { content: "!call get_time {}", tools } },
  { name: "custom-call", ask: { content: patch }, styles: ["responses"], edit: withCustomTool },
  { name: "missing-call", ask: { content: "!say No.", tools, toolChoice: "required" }, key: "caller" },
  { name: "cut-in-a-call", ask: { content: lines("!say Looking. ", callOslo, cutCall), tools } },
  { name: "length", ask: { content: "!fault endless-incomplete\n!say -" } },
  { name: "withdrawn", ask: { content: "!count 5\n!fault content-filter after=3" } },
  { name: "stop", ask: { content: `!say ["one E","N","D two"]`, stop: ["x", "END"] } },
  { name: "usage-only", ask: { content: "!say END two", stop: ["END"] } },
  {
    name: "usage-chunk",
    ask: { content: "!say Hi" },
    styles: ["chat"],
    ways: ["streamed"],
    edit: (body) => ({ ...body, stream_options: { include_usage: true } })
  },
  { name: "failure-before-headers", ask: { content: "!count 5\n!fault rate-limited retry_after=7" }, key: "caller" },
  {
    name: "failure-before-first-frame",
    ask: { content: "!count 5\n!fault slow ms=12000\n!fault error-status after=0" },
    ways: ["streamed"],
    key: "caller",
    silence: 12_000
  },
  { name: "failure-after-headers", ask: { content: "!count 5\n!fault error-status after=3" }, key: "caller" },
  { name: "invalid", ask: { content: "Hi" }, edit: withWrongTemperature },
  { name: "unauthorized", ask: { content: "Hi" }, key: "none" }
]

function withCustomTool(body: Body): Body {
  return { ...body, tools: [{ type: "custom", name: "patch", description: "Changes a file" }] }
}

function withWrongTemperature(body: Body, style: StyleName): Body {
  return style === "generate" ? { ...body, generationConfig: { temperature: "hot" } } : { ...body, temperature: "hot" }
}
