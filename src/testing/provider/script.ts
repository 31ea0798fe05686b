/**
 * From a prompt to a reply. The last user turn may hold a script, with one directive per line.
 *
 * The other lines are the question. A script that says something is the answer; otherwise the question gets the default answer.
 */
import type { Flags } from "../../contracts/session/writeReply.ts"
import { type PromptTurn, readPrompt } from "../../contracts/session/writeRequest.ts"
import { estimateTokens } from "../../domain/estimateTokens.ts"
import type { Json } from "../../domain/json.ts"
import { answerByDefault } from "../../upstream/embedded/defaultAnswer.ts"
import { callForms, isCallForm, writeCall } from "./callForms.ts"
import { readFault } from "./faults.ts"
import { type Reply, ReplyBuilder, type ReplySettings, type Restart, type UsageForm } from "./Reply.ts"
import { readCount, readJson, readMillis, readText, readWord } from "./scriptValues.ts"

/** Events that one directive may write, at most. */
const most = 100_000

interface Directive {
  readonly syntax: string
  readonly about: string
  /** It writes text, which replaces the default answer. */
  readonly speaks: boolean
  /** Runs with the rest of the line; returns what was expected there if it cannot be read. */
  readonly run: (rest: string, reply: ReplyBuilder, prompt: string) => string | undefined
}

const says = (syntax: string, about: string, run: Directive["run"]): Directive => ({ syntax, about, speaks: true, run })
const sets = (syntax: string, about: string, run: Directive["run"]): Directive => ({
  syntax,
  about,
  speaks: false,
  run
})

const isRestart = (word: string): word is Restart => word === "snapshot" || word === "empty" || word === "none"

const computedForms = ["accumulated", "running", "total", "parts", "both"] as const

const readUsage = (rest: string): UsageForm | undefined => {
  if (rest === "none") return { _tag: "None" }
  if (rest === "zero") return { _tag: "Zero" }
  const form = computedForms.find((each) => each === rest)
  if (form !== undefined) return { _tag: "Computed", form }
  const value = readJson(rest)
  if (typeof value === "number") return { _tag: "Accumulated", value }
  return typeof value === "object" && value !== null ? { _tag: "Given", value } : undefined
}

/** Every directive by name, in the order of the documents. */
export const directives = {
  "say": says(
    "!say TEXT",
    "Reply text: as it stands, as a JSON string, or as a JSON array with one event each.",
    (rest, reply) => {
      reply.say(readText(rest))
      return undefined
    }
  ),
  "think": says("!think TEXT", "Reasoning, written like `!say`; only reasoning models show it.", (rest, reply) => {
    reply.think(readText(rest))
    return undefined
  }),
  "repeat": says("!repeat N TEXT", "N events of the same text.", (rest, reply) => {
    const [word, text] = readWord(rest)
    const count = readCount(word, most)
    if (count === undefined) return `a number up to ${most} and a text`
    const value = readText(text)
    reply.repeat(count, typeof value === "string" ? value : value.join(""))
    return undefined
  }),
  "count": says("!count N", "Counts from 1 to N, one event each: a long stream.", (rest, reply) => {
    const count = readCount(rest, most)
    if (count === undefined) return `a number up to ${most}`
    reply.say(Array.from({ length: count }, (_, i) => i === 0 ? "1" : ` ${i + 1}`))
    return undefined
  }),
  "call": says(
    "!call [form=FORM] NAME {JSON}",
    `Writes a tool call as text, as models of a family do: ${
      Object.keys(callForms).map((form) => `\`${form}\``).join(", ")
    }.`,
    (rest, reply) => {
      const [first, after] = readWord(rest)
      const form = first.startsWith("form=") ? first.slice("form=".length) : "tool_call"
      const [name, json] = first.startsWith("form=") ? readWord(after) : [first, after]
      if (!isCallForm(form)) return "a form from the table"
      const value: Json | undefined = json === "" ? {} : readJson(json)
      if (name === "" || typeof value !== "object" || value === null || Array.isArray(value)) {
        return "a tool's name and a JSON object"
      }
      reply.say(writeCall(form, name, json === "" ? "{}" : json))
      return undefined
    }
  ),
  "echo-prompt": says(
    "!echo-prompt",
    "Answers with the whole prompt that the upstream received.",
    (_, reply, prompt) => {
      reply.say(prompt)
      return undefined
    }
  ),
  "search": says(
    "!search [N]",
    "N results (3) and the page that was opened; text may then hold `[citation:1]` and `[reference:0]`.",
    (rest, reply) => {
      const count = rest === "" ? 3 : readCount(rest, 100)
      if (count === undefined) return "a number up to 100"
      reply.search(count)
      return undefined
    }
  ),
  "fragment": says(
    "!fragment TYPE TEXT",
    "A fragment of another type, which is not reply text: `TIP`, or an unknown one.",
    (rest, reply) => {
      const [type, text] = readWord(rest)
      if (type === "") return "a type and a text"
      const value = readText(text)
      reply.fragment(type, { content: typeof value === "string" ? value : value.join("") })
      return undefined
    }
  ),
  "chunk": sets(
    "!chunk N, N units, words, whole",
    "Cuts what follows into events of N characters, of N UTF-16 units (also inside surrogate pairs), by word (the default), or not at all.",
    (rest, reply) => {
      const [word, unit] = readWord(rest)
      const count = readCount(word, most)
      if (word === "words" || word === "whole") reply.chunking = { _tag: word === "words" ? "Words" : "Whole" }
      else if (count === undefined || count === 0) return "a number, `words` or `whole`"
      else reply.chunking = { _tag: unit === "units" ? "Units" : "Characters", count }
      return undefined
    }
  ),
  "pace": sets(
    "!pace TIME",
    "A delay before every event: `20ms`, `1s`; `0` sends every event by itself without delay.",
    (rest, reply) => {
      const millis = readMillis(rest)
      if (millis === undefined) return "a time such as 20ms"
      reply.pace = millis
      return undefined
    }
  ),
  "wait": sets("!wait TIME", "Silence at this place.", (rest, reply) => {
    const millis = readMillis(rest)
    if (millis === undefined) return "a time such as 20ms"
    reply.wait(millis)
    return undefined
  }),
  "burst": sets("!burst N", "N events in one network write.", (rest, reply) => {
    const count = readCount(rest, most)
    if (count === undefined || count === 0) return "a number from 1"
    reply.burst = count
    return undefined
  }),
  "shape": sets("!shape old", "The older document: two strings in place of fragments.", (rest, reply) => {
    if (rest !== "old" && rest !== "new") return "`old` or `new`"
    reply.shape = rest
    return undefined
  }),
  "usage": sets(
    "!usage FORM",
    "How token counts come: `accumulated` (default), `running` (after every event), `total`, `parts`, `both` (`token_usage` and another `accumulated_token_usage`), a number, a JSON object for `token_usage`, `zero`, `none`.",
    (rest, reply) => {
      const usage = readUsage(rest)
      if (usage === undefined) return "a form from the table"
      reply.usage = usage
      return undefined
    }
  ),
  "cut": sets(
    "!cut [N] [KIND] [auto]",
    "The output limit cuts the reply off, here or after every N events: INCOMPLETE (`auto`: AUTO_CONTINUE); `chat/continue` goes on with a `snapshot` (default), an `empty` one or `none`.",
    (rest, reply) => {
      for (const word of rest.split(/\s+/).filter((each) => each !== "")) {
        const count = readCount(word, most)
        if (isRestart(word)) reply.cuts = { ...reply.cuts, restart: word }
        else if (word === "auto") reply.cuts = { ...reply.cuts, status: "AUTO_CONTINUE" }
        else if (count !== undefined && count > 0) reply.cuts = { ...reply.cuts, every: count }
        else return "a number, `snapshot`, `empty`, `none`, `auto`"
      }
      if (!/\d/.test(rest)) reply.cuts = { ...reply.cuts, at: new Set([...reply.cuts.at, reply.length]) }
      return undefined
    }
  ),
  "fault": sets(
    "!fault NAME [key=value …]",
    "A fault from the table below, at this place of the reply or `after=N` events; `call=continue` for the continued stream, `times=N` for the first N requests with this script; `status`, `retry_after`, `code`, `biz_code`, `message`, `reason`, `ms`, `bytes` where the fault has such.",
    (rest, reply) => {
      const fault = readFault(rest)
      if (typeof fault === "string") return fault
      const place = fault.call === "completion" && reply.length > 0 ? reply.length : undefined
      reply.faults.push({ ...fault, after: fault.after ?? place })
      return undefined
    }
  ),
  "next": sets(
    "!next",
    "What follows is the answer once a tool has replied; several of them, one a reply.",
    () => undefined
  )
} as const satisfies Readonly<Record<string, Directive>>

type DirectiveName = keyof typeof directives

const isDirective = (name: string): name is DirectiveName => Object.hasOwn(directives, name)

interface Line {
  readonly name: DirectiveName
  readonly rest: string
  readonly text: string
}

const readLine = (text: string): Line | undefined => {
  const match = /^!([a-z-]+)(?:[ \t]+(.*))?$/.exec(text.trimEnd())
  if (match === null || !isDirective(match[1]!)) return undefined
  return { name: match[1]!, rest: match[2]?.trim() ?? "", text }
}

interface Ran {
  /** The lines without a directive. */
  readonly question: string
  /** The script wrote text. */
  readonly spoke: boolean
}

/**
 * Runs the section of the script in `text` that follows `replies` tool replies. A mistake becomes the answer, so that the
 * script's author sees it.
 */
const runScript = (text: string, replies: number, prompt: string, reply: ReplyBuilder): Ran => {
  const question: Array<string> = []
  let section = 0
  let spoke = false
  for (const each of text.split("\n")) {
    const line = readLine(each)
    if (line === undefined) {
      if (section === 0) question.push(each)
      continue
    }
    if (line.name === "next") section++
    if (section !== replies) continue
    const directive: Directive = directives[line.name]
    const expected = directive.run(line.rest, reply, prompt) ?? (reply.overflown ? "a shorter reply" : undefined)
    if (expected !== undefined) {
      reply.clear()
      reply.say(`The script has a mistake: \`${line.text}\`: ${expected} was expected.`)
      return { question: "", spoke: true }
    }
    spoke ||= directive.speaks
  }
  return { question: question.join("\n").trim(), spoke }
}

/** Every directive with its description. */
export const scriptTable: ReadonlyArray<{ readonly syntax: string; readonly about: string }> = Object.values(directives)

interface ReplyRequest extends Flags {
  readonly prompt: string
  /** Turns of the same session before this one. */
  readonly earlier: ReadonlyArray<PromptTurn>
}

/** The reply to a prompt. `script` replaces the last user turn. */
export const replyTo = (request: ReplyRequest, settings: ReplySettings, script?: string): Reply => {
  const turns = [...request.earlier, ...readPrompt(request.prompt)]
  const lastUser = turns.findLastIndex((turn) => turn.role === "user")
  const text = script ?? turns[lastUser]?.text ?? ""
  const toolReplies = script === undefined ? turns.slice(lastUser + 1).filter((turn) => turn.role === "tool").length : 0
  const reply = new ReplyBuilder(request, settings)
  const ran = runScript(text, toolReplies, request.prompt, reply)
  if (!ran.spoke) { for (const part of answerByDefault(turns, request.search, ran.question)) reply.part(part) }
  return reply.build(estimateTokens(request.prompt))
}
