/**
 * The conversation that a model takes in place of one whose parts its server has refused, where the server's body alone cannot tell how: forced
 * calls, a schema beside tools, names and ids. The reply comes back in the caller's terms.
 */
import { jsonSchemaOutput, toolChoices } from "../../contracts/shared/conversation.ts"
import { type WordLimit, wordLimit } from "../../contracts/shared/limits.ts"
import { withProperties } from "../../contracts/shared/schemas.ts"
import { withAcceptedTools } from "../../contracts/shared/validHistory.ts"
import {
  type Conversation,
  type Part,
  type StructuredOutput,
  Text,
  type ToolChoice,
  type ToolDeclaration,
  type Turn
} from "../../domain/Conversation.ts"
import type { RefusedPart } from "../../domain/refusedParts.ts"
import { once, transduce } from "../../domain/stream/transduce.ts"
import type { Machine } from "../../domain/stream/transducer.ts"
import {
  type UpstreamCall,
  UpstreamChoice,
  type UpstreamEvent,
  UpstreamReasoning,
  UpstreamText
} from "../../domain/UpstreamEvent.ts"
import { reminder } from "../../sieve/declaration.ts"
import type { CompletionReply, CompletionRequest } from "../Upstream.ts"

/** What a model takes. */
export interface AcceptedConversation {
  readonly conversation: Conversation
  /** What was changed, by the names that most contracts have for it. */
  readonly changed: ReadonlyArray<string>
  /** The tool whose call is the text of the reply; `undefined` without one. */
  readonly replyTool: string | undefined
  /** The caller's names of tools, by those that the server gets. */
  readonly names: ReadonlyMap<string, string>
}

const isForced = ({ _tag }: ToolChoice): boolean => _tag === "Required" || _tag === "Function"

/** A name that no tool has. */
const freeName = (tools: ReadonlyArray<ToolDeclaration>): string => {
  const taken = new Set(tools.map(({ name }) => name))
  let name = "reply"
  for (let count = 2; taken.has(name); count++) name = `reply_${count}`
  return name
}

const anyObject = { type: "object", properties: {}, additionalProperties: true }

/** The tool whose arguments are a reply of the form; `undefined` for a reply that is no object, which arguments always are. */
const toolOf = (output: StructuredOutput, tools: ReadonlyArray<ToolDeclaration>): ToolDeclaration | undefined => {
  const schema = output._tag === "JsonObject" ? anyObject : withProperties(output.schema)
  if (schema["type"] !== "object") return undefined
  const about = output._tag === "JsonObject" ? "" : ` ${output.description ?? ""}`
  return {
    name: freeName(tools),
    description: `Gives the reply itself: the arguments are the whole reply.${about}`.trimEnd(),
    parameters: schema
  }
}

const strictOfTools = /^tools\b.*\bstrict$/
const namesOfTools = /\b(?:tools|functions|functionDeclarations|tool_calls|tool_use|tool_choice|input)\b.*\bname$/
const idsOfCalls = /\b(?:tool_calls|tool_use|functionCall)\.id$|\b(?:tool_)?call_id$|\btool_use_id$/

/** What each kind of words may have. Words that are shorter than a hash have an exact length, as servers that take such words ask. */
const limitOf = (most: number): WordLimit =>
  most <= 16
    ? wordLimit(most, "a-zA-Z0-9", "a-zA-Z0-9", most)
    : wordLimit(most, "a-zA-Z0-9_-", "a-zA-Z_")

const withIds = (conversation: Conversation, { accepted }: WordLimit): Conversation => {
  const partOf = (part: Part): Part =>
    part._tag === "Call"
      ? { ...part, id: accepted(part.id) }
      : part._tag === "Result"
      ? { ...part, callId: accepted(part.callId) }
      : part
  return { ...conversation, turns: conversation.turns.map((turn) => ({ ...turn, parts: turn.parts.map(partOf) })) }
}

/** The turns, of which those of one role in a row are one. Results stay apart, as their contract has them. */
const joined = (turns: ReadonlyArray<Turn>): ReadonlyArray<Turn> => {
  const out: Array<{ readonly turn: Turn; readonly parts: Array<Part> }> = []
  for (const turn of turns) {
    const last = out.at(-1)
    if (last?.turn.role === turn.role && turn.role !== "tool") last.parts.push(...turn.parts)
    else out.push({ turn, parts: [...turn.parts] })
  }
  return out.map(({ parts, turn }) => parts.length === turn.parts.length ? turn : { ...turn, parts })
}

class Accepting {
  readonly changed: Array<string> = []
  readonly names = new Map<string, string>()
  replyTool: string | undefined
  conversation: Conversation

  constructor(conversation: Conversation) {
    this.conversation = conversation
  }

  /** Asks for a call in words. */
  withoutForce(): void {
    const { toolChoice, turns } = this.conversation
    if (!isForced(toolChoice)) return
    this.changed.push("tool_choice")
    this.conversation = {
      ...this.conversation,
      turns: [...turns, { role: "system", parts: [Text(reminder(toolChoice))] }],
      toolChoice: toolChoices.auto
    }
  }

  /** Makes the schema a tool that the model has to call, or leaves it out where it has to call another one anyway. */
  withTool(isAlways: boolean): void {
    const { output, toolChoice, tools } = this.conversation
    if (output === undefined || (isAlways ? output._tag === "JsonObject" : tools.length === 0)) return
    const tool = toolOf(output, tools)
    if (isForced(toolChoice)) this.conversation = { ...this.conversation, output: undefined }
    else if (tool === undefined) return
    else {
      this.replyTool = tool.name
      this.conversation = {
        ...this.conversation,
        output: undefined,
        tools: [...tools, tool],
        toolChoice: toolChoice._tag === "None" || tools.length === 0
          ? { _tag: "Function", name: tool.name }
          : toolChoices.required
      }
    }
    this.changed.push("response_format")
  }

  /** Says what the system says at the beginning of the user's next turn. */
  withoutSystem(): void {
    const { turns } = this.conversation
    if (turns.every(({ role }) => role !== "system")) return
    this.changed.push("system")
    this.conversation = {
      ...this.conversation,
      turns: joined(turns.map((turn) => turn.role === "system" ? { ...turn, role: "user" } : turn))
    }
  }

  /** Joins turns of one role in a row. What the system says after the beginning is the user's. */
  inTurn(): void {
    const { turns } = this.conversation
    const first = turns.findIndex(({ role }) => role !== "system")
    const ordered = turns.map((turn, i): Turn => turn.role === "system" && i > first ? { ...turn, role: "user" } : turn)
    this.conversation = { ...this.conversation, turns: joined(ordered) }
  }

  /** Asks for any object by a schema. */
  withSchema(): void {
    if (this.conversation.output?._tag !== "JsonObject") return
    this.conversation = { ...this.conversation, output: jsonSchemaOutput({ schema: anyObject }) }
  }

  /** Asks for strict arguments of no tool, in the word that the server takes; of tools that are mixed alone, if it takes both. */
  withoutStrict(strict: false | undefined, isMixed: boolean): void {
    const { tools } = this.conversation
    if (tools.every((tool) => tool.strict === (isMixed ? tools[0]?.strict : strict))) return
    if (tools.some((tool) => tool.strict === true)) this.changed.push("tools.strict")
    this.conversation = { ...this.conversation, tools: tools.map((tool) => ({ ...tool, strict })) }
  }

  /** Shortens names of tools, or ids of calls. */
  shorten(path: string, most: number): void {
    const limit = limitOf(most)
    if (idsOfCalls.test(path)) this.conversation = withIds(this.conversation, limit)
    if (!namesOfTools.test(path)) return
    for (const { name } of this.conversation.tools) {
      const sent = limit.accepted(name)
      if (sent !== name) this.names.set(sent, name)
    }
    if (this.names.size === 0) return
    this.conversation = withAcceptedTools(this.conversation, { needsProperties: false, toolNames: limit })
  }
}

/** The conversation without what the server has refused of others. */
export const acceptedConversation = (
  conversation: Conversation,
  parts: ReadonlyArray<RefusedPart>
): AcceptedConversation => {
  const accepting = new Accepting(conversation)
  for (const part of parts) {
    if (part._tag === "ToolsOrSchema" || part._tag === "NoSchema") accepting.withTool(part._tag === "NoSchema")
    else if (part._tag === "UnsupportedValue" && part.path === "response_format.type") {
      if (part.allowed.includes("json_schema")) accepting.withSchema()
    } else if (part._tag === "NoSystem") accepting.withoutSystem()
    else if (part._tag === "AlternateTurns") accepting.inTurn()
    else if (part._tag === "MixedStrict") accepting.withoutStrict(false, true)
    else if (part._tag === "UnsupportedField" && strictOfTools.test(part.path)) {
      accepting.withoutStrict(undefined, false)
    } else if (part._tag === "TooLong") accepting.shorten(part.path, part.most)
  }
  // A schema that has become a tool is asked for in words too.
  if (parts.some(({ _tag }) => _tag === "ForcedCall")) accepting.withoutForce()
  return accepting
}

/** Characters that wait for the name of a call. */
const mostWaiting = 65_536

/** Makes of a server's events those of the reply to the caller, of one choice. */
class CallersChoice implements Machine<UpstreamEvent, UpstreamEvent> {
  readonly #accepted: AcceptedConversation
  readonly #onLeftOut: (path: string) => void
  /** What the call of an index is: the reply, a second reply, or a call. */
  readonly #kinds = new Map<number, "reply" | "second" | "call">()
  /** What waits: text before the first call, which is the reply if no call is, and calls without a name. */
  #early: Array<UpstreamText> | undefined
  readonly #unnamed = new Map<number, Array<UpstreamCall>>()
  #waiting = 0
  #hasReply = false

  /** `onLeftOut` is called with the path of each part of the server's reply that the caller does not get. */
  constructor(accepted: AcceptedConversation, onLeftOut: (path: string) => void) {
    this.#accepted = accepted
    this.#onLeftOut = onLeftOut
    this.#early = accepted.replyTool === undefined ? undefined : []
  }

  push(event: UpstreamEvent, out: Array<UpstreamEvent>): void {
    if (event._tag === "UpstreamCall") this.#call(event, out)
    else if (event._tag === "UpstreamText" && this.#early !== undefined) this.#wait(this.#early, event, event.text, out)
    else {
      if (event._tag === "UpstreamFinish") this.end(out)
      out.push(event)
    }
  }

  end(out: Array<UpstreamEvent>): void {
    for (const event of this.#early ?? []) out.push(event)
    this.#early = undefined
    for (const events of this.#unnamed.values()) for (const event of events) out.push(event)
    this.#unnamed.clear()
  }

  #wait<Event extends UpstreamEvent>(
    events: Array<Event>,
    event: Event,
    text: string,
    out: Array<UpstreamEvent>
  ): void {
    events.push(event)
    this.#waiting += text.length
    if (this.#waiting > mostWaiting) this.end(out)
  }

  #call(event: UpstreamCall, out: Array<UpstreamEvent>): void {
    const { argumentsDelta, index, name } = event
    const kind = this.#kinds.get(index)
    if (kind === "reply" && argumentsDelta !== "") out.push(UpstreamText(argumentsDelta))
    if (kind === "call") out.push(event)
    if (kind !== undefined) return
    const before = this.#unnamed.get(index) ?? []
    if (name === undefined) {
      this.#unnamed.set(index, before)
      return this.#wait(before, event, argumentsDelta, out)
    }
    this.#unnamed.delete(index)
    const { names, replyTool } = this.#accepted
    // Clients read the text as the schema says, so that what a model says before a call is a thought. A second reply is left out.
    for (const { text } of this.#early ?? []) out.push(UpstreamReasoning(text))
    this.#early = undefined
    const isReply = name === replyTool
    const isFirst = isReply && !this.#hasReply
    this.#hasReply ||= isReply
    this.#kinds.set(index, isFirst ? "reply" : isReply ? "second" : "call")
    if (isReply && !isFirst) this.#onLeftOut(`reply.tool_calls[${index}]`)
    for (const each of before) this.#call(each, out)
    if (!isReply) out.push(names.has(name) ? { ...event, name: names.get(name) } : event)
    else if (isFirst && argumentsDelta !== "") out.push(UpstreamText(argumentsDelta))
  }
}

/** The same for all choices of a reply. Bounded by the choices that the server was asked for. */
class CallersReply implements Machine<UpstreamEvent, UpstreamEvent> {
  readonly #make: () => CallersChoice
  readonly #choices: Map<number, CallersChoice>
  #current: CallersChoice

  constructor(accepted: AcceptedConversation, onLeftOut: (path: string) => void) {
    this.#make = () => new CallersChoice(accepted, onLeftOut)
    this.#current = this.#make()
    this.#choices = new Map([[0, this.#current]])
  }

  push(event: UpstreamEvent, out: Array<UpstreamEvent>): void {
    if (event._tag !== "UpstreamChoice") return this.#current.push(event, out)
    this.#current = this.#choices.get(event.index) ?? this.#make()
    this.#choices.set(event.index, this.#current)
    out.push(event)
  }

  end(out: Array<UpstreamEvent>): void {
    for (const [index, choice] of this.#choices) {
      if (this.#choices.size > 1) out.push(UpstreamChoice(index))
      choice.end(out)
    }
  }
}

/** A server's reply as its caller gets it. */
export const callersReply = (
  reply: CompletionReply,
  accepted: AcceptedConversation,
  { onChanged }: Pick<CompletionRequest, "onChanged">
): CompletionReply => ({
  ...reply,
  events: reply.events.pipe(transduce(once(new CallersReply(accepted, (path) => onChanged?.([path])))))
})
