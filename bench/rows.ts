/**
 * The rows of the benches that compare targets.
 */
import { type Ask, chat, type Kind, messages, responses } from "./targets.ts"

/** Requests of one kind. */
export interface Scenario {
  readonly name: string
  readonly kind: Kind
  readonly concurrency: number
  readonly what: Ask
  /** The goal for the steady state of a gateway as shipped. */
  readonly goal: string
  /** The tokens of its reply, as the upstream counts them; `undefined` where it counts none. */
  readonly output?: number
}

const tools = {
  tools: [{
    type: "function",
    function: { name: "lookup", parameters: { type: "object", properties: { word: { type: "string" } } } }
  }]
}
const megabyte = `${"The quick brown fox jumps over the lazy dog. ".repeat(23_300)}\n!say short`
const markdown = `!say ${
  JSON.stringify(
    "# A list\n\n1. *One* of `them`:\n\n```ts\nconst a = [1, 2]\n```\n\n> said <b>so</b> | **two** | {three}\n\n"
      .repeat(20)
  )
}`
const call = `!call lookup ${JSON.stringify({ word: "long ".repeat(20_000) })}`

const row = (name: string, kind: Kind, what: Ask, goal = "", concurrency = 50): Scenario => {
  const [, command, count] = /!(count|say) (\d*)/.exec(what.body) ?? []
  const output = command === undefined ? {} : { output: command === "say" ? 1 : Number(count) }
  return { name: `${name}, ${kind}`, kind, concurrency, what, goal, ...output }
}

/** No name contains another one, so that each row can be chosen by its name. */
export const rows: ReadonlyArray<Scenario> = [
  row("chat, whole", "session", chat("!say short", false), "≤ 2.0 × relay"),
  row("chat, whole", "openai", chat("!count 20", false), "below llms"),
  row("chat, stream of 200", "session", chat("!count 200", true), "≤ 1.5 × relay"),
  row("chat, stream of 200", "openai", chat("!count 200", true), "≤ 1.3 × relay"),
  row("chat, stream of 200, tools", "session", chat("!count 200", true, tools), "≤ 1.15 × without"),
  row("chat, stream of 200, tools", "openai", chat("!count 200", true, tools), "≤ 1.15 × without"),
  row("chat, Markdown", "session", chat(markdown, true)),
  row("chat, Markdown, tools", "session", chat(markdown, true, tools), "≤ 1.15 × without"),
  row("messages, whole", "openai", messages("!count 20", false), "below llms"),
  row("messages, stream of 200", "openai", messages("!count 200", true), "≤ 0.67 × llms"),
  row("responses, whole", "responses", responses("!count 20", false)),
  row("responses, stream of 200", "responses", responses("!count 200", true)),
  row("1 MB of messages", "session", chat(megabyte, false), "≤ 1.5 × relay", 4),
  row("1 MB of messages", "openai", chat(megabyte, false), "≤ 1.5 × relay, below llms", 4),
  row("100 kB of arguments", "session", chat(call, true, tools), "", 4),
  row("100 kB of arguments", "openai", chat(call, true, tools), "≤ 1.1 × relay", 4),
  row("chat, whole", "mounted by undici", chat("!say short", false)),
  row("chat, whole", "mounted by client", chat("!say short", false)),
  row("chat, stream of 200", "mounted by undici", chat("!count 200", true))
]
