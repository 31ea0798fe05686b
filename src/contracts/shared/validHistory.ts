/**
 * A history that a contract accepts, from one that no server would have made: agents are cut off, compact and switch models.
 *
 * Results come directly after their calls. A call without a result gets a stand-in, which says that the result is missing. A result without
 * a call becomes words of the user. What a change depends on comes before it, except the result that a call waits for, so that earlier
 * turns are the same in every later request. A history that is accepted stays as it is.
 */
import {
  type CallPart,
  type Conversation,
  type Part,
  type ResultPart,
  Text,
  type ToolDeclaration,
  type Turn
} from "../../domain/Conversation.ts"
import { linkCallsCooperatively } from "../../domain/linkCalls.ts"
import { type Cooperative, runSync, Slice } from "../../domain/stream/cooperative.ts"
import { isWholeFor } from "../../domain/VendorFields.ts"
import { pictureType } from "./fileName.ts"
import type { HistoryRules, Limits } from "./limits.ts"
import { withProperties } from "./schemas.ts"

/** One change: the index of its turn, or of its item in a caller's own request, and what is wrong there. */
export interface Repair {
  readonly turn: number
  readonly what: string
}

/** What stands in for a result. */
export const missingResult = "[The result of this call is missing.]"

/** What stands before a history that begins with the assistant. */
export const missingBeginning = "[The beginning of this conversation is missing.]"

/** A call with its result, or a result with its call. */
interface Linked {
  readonly call: CallPart
  readonly turn: number
  /** The id that the contract accepts. */
  readonly id: string
  answer: { readonly part: ResultPart; readonly turn: number; readonly at: number } | undefined
}

/** The ids of calls that a contract accepts. */
export class CallIds {
  readonly #limits: Limits
  /** How often each was used. */
  readonly #uses = new Map<string, number>()

  constructor(limits: Limits) {
    this.#limits = limits
  }

  nextTurn(): void {
    if (this.#limits.history.uniqueIds === "in a turn") this.#uses.clear()
  }

  /** The id of the next call: its own, or one that no call before has. */
  of(own: string): string {
    const { callIds } = this.#limits
    const id = callIds.accepted(own)
    for (let count = (this.#uses.get(id) ?? 0) + 1;; count++) {
      const numbered = count === 1 ? id : callIds.accepted(`${id}_${count}`)
      if (count > 1 && this.#uses.has(numbered)) continue
      this.#uses.set(id, count).set(numbered, this.#uses.get(numbered) ?? 1)
      return numbered
    }
  }
}

/** The words of a result that cannot be one. */
export const resultInWords = (
  { content, name }: Pick<ResultPart, "content" | "name">,
  isSecond: boolean
): ReadonlyArray<Part> => [
  Text(`[${isSecond ? "Another result of a call" : "The result of a missing call"}${name ? ` of ${name}` : ""}]`),
  ...content
]

class Repairing {
  readonly found: Array<Repair> = []
  readonly #turns: ReadonlyArray<Turn>
  readonly #limits: Limits
  readonly #rules: HistoryRules
  /** The calls of each turn that has some, and what each part of a turn of results answers. */
  readonly #calls = new Map<number, Array<Linked>>()
  readonly #answers = new Map<Part, Linked | "second" | "lone">()
  readonly #byCall = new Map<Part, Linked>()
  isChanged = false

  constructor(turns: ReadonlyArray<Turn>, limits: Limits) {
    this.#turns = turns
    this.#limits = limits
    this.#rules = limits.history
  }

  *run(slice: Slice): Cooperative<ReadonlyArray<Turn>> {
    const turns = this.#turns
    const hasCalls = yield* this.#link(slice)
    const ordered = hasCalls ? yield* this.#ordered(slice) : turns.map((turn, i) => ({ turn, from: i }))
    const filled = this.#rules.refusedTexts === "none" ? ordered : ordered.flatMap((placed) => this.#filled(placed))
    this.#begin(filled)
    if (!this.isChanged) return turns
    return filled.map(({ from, turn }, i) =>
      turn.vendorFields?.continues === true && filled[i - 1]?.from !== from - 1
        ? { ...turn, vendorFields: { vendor: turn.vendorFields.vendor, fields: turn.vendorFields.fields } }
        : turn
    )
  }

  /** Puts a turn of the user before a history that cannot begin as it does. */
  #begin(placed: Array<Placed>): void {
    if (this.#rules.begins === "anyhow") return
    const first = placed.findIndex(({ turn }) => this.#side(turn) !== "system")
    for (let i = first; i !== -1 && placed[i]?.turn.role === "assistant"; i++) {
      if (this.#rules.begins !== "with the user" && !placed[i]!.turn.parts.some((part) => this.#isCall(part))) {
        continue
      }
      this.#note(placed[first]!.from, "the user's first turn is missing")
      placed.splice(first, 0, { from: -1, turn: { role: "user", parts: [Text(missingBeginning)] } })
      return
    }
  }

  #note(turn: number, what: string): void {
    this.isChanged = true
    this.found.push({ turn, what })
  }

  /** A part that the server gets as its caller wrote it, such as the result of a tool that the server ran. */
  #isOwn(part: Part): boolean {
    return isWholeFor(part, this.#limits.contract)
  }

  #isCall(part: Part): part is CallPart {
    return part._tag === "Call" && !this.#isOwn(part)
  }

  #side(turn: Turn): Turn["role"] {
    if (turn.vendorFields?.fields["role"] === "system") return "system"
    return turn.role === "tool" && turn.parts.length > 0 && turn.parts.every((part) => this.#isOwn(part))
      ? "assistant"
      : turn.role
  }

  /** Finds the call of each result: the last one of its id. Returns false if the history has neither. */
  *#link(slice: Slice): Cooperative<boolean> {
    const byId = new Map<string, Linked>()
    const ids = new CallIds(this.#limits)
    let at = 0
    for (let turn = 0; turn < this.#turns.length; turn++) {
      ids.nextTurn()
      for (const part of this.#turns[turn]!.parts) {
        if (slice.add(1)) yield slice.end()
        if ((part._tag !== "Call" && part._tag !== "Result") || this.#isOwn(part)) continue
        at++
        if (part._tag === "Call") {
          const id = ids.of(part.id)
          const linked: Linked = { call: part, turn, id, answer: undefined }
          byId.set(part.id, linked)
          this.#byCall.set(part, linked)
          const calls = this.#calls.get(turn)
          if (calls === undefined) this.#calls.set(turn, [linked])
          else calls.push(linked)
          if (id !== part.id) this.isChanged = true
          continue
        }
        const linked = byId.get(part.callId)
        if (linked === undefined) this.#answers.set(part, "lone")
        else if (linked.answer !== undefined) this.#answers.set(part, "second")
        else {
          linked.answer = { part, turn, at }
          this.#answers.set(part, linked)
        }
      }
    }
    return at > 0
  }

  /** The end of the turns from one on that have a side. */
  #endOf(from: number, side: Turn["role"], isRun: boolean): number {
    let end = from
    while (end < this.#turns.length && this.#side(this.#turns[end]!) === side && (isRun || end === from)) end++
    return end
  }

  /** The turns in the contract's order, each with its index in the caller's. */
  *#ordered(slice: Slice): Cooperative<Array<Placed>> {
    const turns = this.#turns
    const out: Array<Placed> = []
    for (let i = 0; i < turns.length;) {
      if (slice.add(1)) yield slice.end()
      const side = this.#side(turns[i]!)
      if (side === "tool") {
        this.#lone(turns[i]!, i, out)
        i++
        continue
      }
      const end = side === "assistant" ? this.#endOf(i, side, this.#rules.joinsTurns) : i + 1
      const calls: Array<Linked> = []
      const begin = i
      for (; i < end; i++) {
        out.push({ turn: this.#identified(turns[i]!), from: i })
        for (const call of this.#calls.get(i) ?? []) calls.push(call)
      }
      if (calls.length === 0) continue
      const resultsEnd = this.#endOf(end, "tool", true)
      if (this.#isAnswered(calls.length, begin, end, resultsEnd)) {
        for (; i < resultsEnd; i++) out.push({ turn: this.#identified(turns[i]!), from: i })
        continue
      }
      out.push(this.#results(calls, end, resultsEnd))
    }
    return out
  }

  /** The turns from `end` on have the results of all calls of those from `begin` on, and nothing else. */
  #isAnswered(calls: number, begin: number, end: number, resultsEnd: number): boolean {
    let results = 0
    for (let turn = end; turn < resultsEnd; turn++) {
      for (const part of this.#turns[turn]!.parts) {
        const linked = this.#answers.get(part)
        if (typeof linked !== "object" || linked.turn < begin || linked.turn >= end) return false
        results++
      }
    }
    return results === calls
  }

  /** One turn with the results of calls, in the order in which they came, and a stand-in for each that is missing. */
  #results(calls: ReadonlyArray<Linked>, from: number, to: number): Placed {
    const missing = calls.filter(({ answer }) => answer === undefined)
    for (const { turn } of missing) this.#note(turn, "call without a result")
    const answers = calls.flatMap(({ answer, id }) => answer === undefined ? [] : [{ ...answer, id }])
      .toSorted((a, b) => a.at - b.at)
    for (const { turn } of answers) if (turn < from || turn >= to) this.#note(turn, "result apart from its call")
    this.isChanged = true
    const parts = [
      ...answers.map(({ id, part }): Part => part.callId === id ? part : { ...part, callId: id }),
      ...missing.map(({ call, id }): ResultPart => ({
        _tag: "Result",
        callId: id,
        name: call.name,
        isNamed: undefined,
        content: [Text(missingResult)],
        isError: false,
        vendorFields: undefined
      }))
    ]
    // What follows in the same message stays in it.
    const [first] = this.#turns.slice(from, to)
    return first === undefined
      ? { turn: { role: "tool", parts }, from: from - 0.5 }
      : { turn: { ...first, parts }, from: to - 1 }
  }

  /** A turn of results without those that moved to their calls. */
  #lone(turn: Turn, from: number, out: Array<Placed>): void {
    const parts = turn.parts.flatMap((part): ReadonlyArray<Part> => {
      const linked = this.#answers.get(part)
      if (linked === undefined || part._tag !== "Result") return [part]
      if (typeof linked !== "string") return []
      this.#note(from, linked === "lone" ? "result without its call" : "second result of a call")
      return resultInWords(part, linked === "second")
    })
    if (parts.length > 0) out.push({ turn: { ...turn, role: "user", parts }, from })
  }

  /** The turn with the ids that the contract accepts. */
  #identified(turn: Turn): Turn {
    if (!this.isChanged) return turn
    const parts = turn.parts.map((part): Part => {
      if (part._tag === "Call") {
        const id = this.#byCall.get(part)?.id ?? part.id
        return id === part.id ? part : { ...part, id }
      }
      const linked = this.#answers.get(part)
      return part._tag === "Result" && typeof linked === "object" && linked.id !== part.callId
        ? { ...part, callId: linked.id }
        : part
    })
    return parts.every((part, k) => part === turn.parts[k]) ? turn : { ...turn, parts }
  }

  #isRefused(part: Part): boolean {
    if (part._tag !== "Text" || this.#isOwn(part)) return false
    if (this.#rules.refusedTexts === "blank") return part.text.trim() === ""
    const { fields = {}, vendor } = part.vendorFields ?? {}
    return part.text === "" && (vendor !== this.#limits.contract || Object.keys(fields).length === 0)
  }

  /** The turn without refused texts; nothing without anything else, except at the end, where the assistant's is to be continued. */
  #filled({ from, turn }: Placed): ReadonlyArray<Placed> {
    const parts = turn.parts.some((part) => this.#isRefused(part))
      ? turn.parts.filter((part) => !this.#isRefused(part))
      : turn.parts
    const isLast = from === this.#turns.length - 1 && turn.role === "assistant"
    if (parts.length === 0 && turn.role !== "system" && !isLast) {
      this.#note(from, "empty turn")
      return []
    }
    if (parts === turn.parts) return [{ from, turn }]
    this.isChanged = true
    return [{ from, turn: { ...turn, parts } }]
  }
}

/** A turn, and its index in the caller's history. */
interface Placed {
  readonly turn: Turn
  readonly from: number
}

/** The conversation with tools that the contract accepts: their schemas, and their names in declarations, in the choice and in calls. */
export const withAcceptedTools = (
  conversation: Conversation,
  { needsProperties, toolNames }: Pick<Limits, "needsProperties" | "toolNames">
): Conversation => {
  const { toolChoice, tools, turns } = conversation
  const accepted = (name: string): string => toolNames.accepted(name)
  const toolOf = (tool: ToolDeclaration): ToolDeclaration => {
    const name = accepted(tool.name)
    const parameters = needsProperties && tool.parameters ? withProperties(tool.parameters) : tool.parameters
    return name === tool.name && parameters === tool.parameters ? tool : { ...tool, name, parameters }
  }
  const partOf = (part: Part): Part => {
    if ((part._tag !== "Call" && part._tag !== "Result") || part.name === undefined) return part
    const name = accepted(part.name)
    return name === part.name ? part : { ...part, name }
  }
  const turnOf = (turn: Turn): Turn =>
    turn.parts.some((part) => partOf(part) !== part) ? { ...turn, parts: turn.parts.map(partOf) } : turn
  return {
    ...conversation,
    tools: tools.map(toolOf),
    toolChoice: toolChoice._tag === "Function" ? { ...toolChoice, name: accepted(toolChoice.name) } : toolChoice,
    turns: turns.map(turnOf)
  }
}

/** The conversation with linked calls, in a history that the contract accepts. */
export function* validHistory(conversation: Conversation, limits: Limits): Cooperative<Conversation> {
  const slice = new Slice()
  const linked = yield* linkCallsCooperatively(conversation, slice)
  const turns = yield* new Repairing(linked.turns, limits).run(slice)
  return turns === linked.turns ? linked : { ...linked, turns }
}

/** What a server gets that differs from the caller's history, and whether nothing is left of it. */
export interface Repairs {
  readonly found: ReadonlyArray<Repair>
  readonly isEmpty: boolean
  /** A picture of a type that the contract does not have; `undefined` without one. */
  readonly unread: Repair | undefined
}

/** The first picture of a type that the contract does not have, with what it has. */
const unreadPicture = (turns: ReadonlyArray<Turn>, { contract, pictures }: Limits): Repair | undefined => {
  if (pictures.length === 0) return undefined
  const isUnread = (part: Part): boolean =>
    part._tag === "Result"
      ? part.content.some(isUnread)
      : part._tag === "Image" && part.data !== undefined && !isWholeFor(part, contract) &&
        !pictures.includes(pictureType(part))
  const turn = turns.findIndex(({ parts }) => parts.some(isUnread))
  return turn === -1 ? undefined : { turn, what: `a picture is ${pictures.join(", ")}` }
}

/** What the history for a contract differs in. */
export const repairsOf = (limits: Limits) => (conversation: Conversation): Repairs => {
  const slice = new Slice()
  const repairing = new Repairing(runSync(linkCallsCooperatively(conversation, slice)).turns, limits)
  const turns = runSync(repairing.run(slice))
  return {
    unread: unreadPicture(conversation.turns, limits),
    found: repairing.found,
    isEmpty: limits.history.refusedTexts !== "none" && turns.every(({ parts }) => parts.length === 0)
  }
}

/** The names that the client gave to tools, by those that a server of the contract gets; `undefined` if they are the same. */
export const clientNames = (
  { tools }: Conversation,
  { toolNames }: Pick<Limits, "toolNames">
): ReadonlyMap<string, string> | undefined => {
  let names: Map<string, string> | undefined
  for (const { name } of tools) {
    const sent = toolNames.accepted(name)
    if (sent !== name) (names ??= new Map<string, string>()).set(sent, name)
  }
  return names
}
