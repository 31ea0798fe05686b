/**
 * What only the upstream reads of its calls, such as signatures of thinking, for callers whose style or client drops it: kept by
 * the caller and the call's id, and put back where the call returns without it.
 *
 * In this process only. At most `mostCalls` calls of `mostBytes` in all, and none for longer than stored responses live. A full
 * store forgets the oldest call of the caller that has the most, which takes a look at each caller.
 */
import type { Conversation, Part, Turn } from "../domain/Conversation.ts"
import type { JsonFields } from "../domain/json.ts"
import { type Cooperative, Slice } from "../domain/stream/cooperative.ts"

const mostCalls = 10_000
const mostBytes = 32 * 1024 * 1024
/** What is larger is not kept. */
const largest = 1024 * 1024

interface Kept {
  readonly sealed: JsonFields
  readonly bytes: number
  /** Monotonic milliseconds. */
  readonly since: number
}

interface Owner {
  readonly calls: Map<string, Kept>
  bytes: number
}

export class SealedCalls {
  private readonly owners = new Map<string, Owner>()
  private count = 0
  private bytes = 0
  private readonly now: () => number

  /** `now` is the monotonic clock's milliseconds. */
  constructor(now: () => number) {
    this.now = now
  }

  /** Keeps what belongs to a call; replaces what was kept of it. */
  keep(owner: string, callId: string, sealed: JsonFields): void {
    const bytes = 2 * JSON.stringify(sealed).length
    if (bytes > largest) return
    this.forget(owner, callId)
    let of = this.owners.get(owner)
    if (of === undefined) {
      of = { calls: new Map(), bytes: 0 }
      this.owners.set(owner, of)
    }
    of.calls.set(callId, { sealed, bytes, since: this.now() })
    of.bytes += bytes
    this.count++
    this.bytes += bytes
    while (this.count > mostCalls || this.bytes > mostBytes) this.forgetOne()
  }

  /** The conversation with what was kept of its calls in the last `lifetime` milliseconds. */
  *restored(owner: string, conversation: Conversation, lifetime: number): Cooperative<Conversation> {
    const of = this.owners.get(owner)
    if (of === undefined) return conversation
    const slice = new Slice()
    const turns: Array<Turn> = []
    let isChanged = false
    for (const turn of conversation.turns) {
      if (slice.add(1, turn.parts.length)) yield slice.end()
      const parts = turn.role === "assistant"
        ? turn.parts.map((part) => this.restoredPart(owner, of, part, lifetime))
        : turn.parts
      const isSame = parts.every((part, i) => part === turn.parts[i])
      isChanged ||= !isSame
      turns.push(isSame ? turn : { ...turn, parts })
    }
    return isChanged ? { ...conversation, turns } : conversation
  }

  /** Nothing is kept for the caller. */
  isEmpty(owner: string): boolean {
    return this.count === 0 || !this.owners.has(owner)
  }

  private restoredPart(owner: string, of: Owner, part: Part, lifetime: number): Part {
    if (part._tag !== "Call") return part
    const kept = of.calls.get(part.id)
    if (kept === undefined) return part
    if (this.now() - kept.since >= lifetime) {
      this.forget(owner, part.id)
      return part
    }
    return { ...part, sealed: { ...kept.sealed, ...part.sealed } }
  }

  private forget(owner: string, callId: string): void {
    const of = this.owners.get(owner)
    const kept = of?.calls.get(callId)
    if (of === undefined || kept === undefined) return
    of.calls.delete(callId)
    of.bytes -= kept.bytes
    this.count--
    this.bytes -= kept.bytes
    if (of.calls.size === 0) this.owners.delete(owner)
  }

  private forgetOne(): void {
    let most: readonly [string, Owner] | undefined
    const size = ({ bytes, calls }: Owner) => bytes / mostBytes + calls.size / mostCalls
    for (const entry of this.owners) if (most === undefined || size(entry[1]) > size(most[1])) most = entry
    for (const callId of most?.[1].calls.keys() ?? []) return this.forget(most![0], callId)
  }
}
