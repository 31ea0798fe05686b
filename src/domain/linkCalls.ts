/**
 * Links the calls and results of a history: every call gets an id, every result the id and name of its call.
 */
import type { CallPart, Conversation, Part, ResultPart, Turn } from "./Conversation.ts"
import { type Cooperative, runSync, Slice } from "./stream/cooperative.ts"

/** The longest name that is filled in: the vendors' limit. A longer name would be repeated in every result. */
const longestName = 64

const madeId = "call_history_"

/** True for an id that was filled in. */
export const isMadeId = (id: string): boolean => id.startsWith(madeId)

interface OpenCall {
  readonly id: string
  readonly name: string
  open: boolean
}

/** Calls in order; each answered call is skipped once. */
class CallQueue {
  readonly #calls: Array<OpenCall> = []
  #next = 0

  add(call: OpenCall): void {
    this.#calls.push(call)
  }

  /** The first call without a result. */
  first(): OpenCall | undefined {
    while (this.#calls[this.#next]?.open === false) this.#next++
    return this.#calls[this.#next]
  }
}

/** Links calls and results one by one, in order. */
class Linker {
  #made = 0
  readonly #byId = new Map<string, OpenCall>()
  readonly #all = new CallQueue()
  readonly #byName = new Map<string, CallQueue>()

  link(part: CallPart | ResultPart): Part {
    return part._tag === "Call" ? this.#call(part) : this.#result(part)
  }

  #newId(): string {
    return `${madeId}${this.#made++}`
  }

  #call(part: CallPart): CallPart {
    const id = part.id === "" ? this.#newId() : part.id
    const before = this.#byId.get(id)
    if (before !== undefined) before.open = false
    const call = { id, name: part.name, open: true }
    this.#byId.set(id, call)
    this.#all.add(call)
    const named = this.#byName.get(part.name) ?? new CallQueue()
    named.add(call)
    this.#byName.set(part.name, named)
    return part.id === id ? part : { ...part, id }
  }

  #result(part: ResultPart): ResultPart {
    const waiting = part.name === undefined ? this.#all : this.#byName.get(part.name)
    const callId = part.callId === "" ? waiting?.first()?.id ?? this.#newId() : part.callId
    const call = this.#byId.get(callId)
    if (call !== undefined) call.open = false
    const name = part.name ?? (call === undefined || call.name.length > longestName ? undefined : call.name)
    return part.callId === callId && part.name === name ? part : { ...part, callId, name }
  }
}

/**
 * Fills in missing ids and names. A result without an id belongs to the first call without a result, of the same name if the result has
 * one. A result with an unknown id keeps it.
 */
export function* linkCallsCooperatively(conversation: Conversation, slice: Slice): Cooperative<Conversation> {
  let linker: Linker | undefined
  let linkedTurns: Array<Turn> | undefined
  for (let i = 0; i < conversation.turns.length; i++) {
    const turn = conversation.turns[i]!
    let linkedParts: Array<Part> | undefined
    if (slice.add(1)) yield slice.end()
    for (let k = 0; k < turn.parts.length; k++) {
      const part = turn.parts[k]!
      if (slice.add(1)) yield slice.end()
      if (part._tag !== "Call" && part._tag !== "Result") continue
      linker ??= new Linker()
      const linked = linker.link(part)
      if (linked === part) continue
      linkedParts ??= [...turn.parts]
      linkedParts[k] = linked
    }
    if (linkedParts === undefined) continue
    linkedTurns ??= [...conversation.turns]
    linkedTurns[i] = { ...turn, parts: linkedParts }
  }
  return linkedTurns === undefined ? conversation : { ...conversation, turns: linkedTurns }
}

/** `linkCallsCooperatively` without pauses. */
export const linkCalls = (conversation: Conversation): Conversation =>
  runSync(linkCallsCooperatively(conversation, new Slice()))
