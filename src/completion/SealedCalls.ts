/**
 * What only the upstream reads of its calls, such as signatures of thinking, for callers whose style or client drops it: kept by
 * the caller and the call's id, and put back where the call returns without it. And who made each seal that has passed to a caller, by the
 * caller and the seal's end.
 *
 * In memory: at most `mostCalls` calls and seals of `mostBytes` in all. None is kept for longer than stored responses live, and no seal for
 * longer than a day. A full memory forgets the oldest one of the caller that has the most, which takes a look at each caller.
 *
 * Nodes of a shared store also write each one there, before the reply's events with it leave, and look up those that they do not know. A
 * node looks up each once, and at most `mostLookedUp` of a request, the latest ones first.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { Conversation, Part, Turn } from "../domain/Conversation.ts"
import type { JsonFields } from "../domain/json.ts"
import { type Maker, mayOpen } from "../domain/makers.ts"
import { ParsedObject } from "../domain/schemas.ts"
import { type Cooperative, Slice } from "../domain/stream/cooperative.ts"

const mostCalls = 10_000
const mostBytes = 32 * 1024 * 1024
/** What is larger is not kept. */
const largest = 1024 * 1024

const mostLookedUp = 32
/** Turns at the end of a conversation in which calls are looked for. */
const mostTurns = 1_000
const lookedUpAtOnce = 8
/** Characters of an id that is looked up. */
const longestId = 200

/** Characters at the end of a seal by which it is known. */
const endOfSeal = 64
/** Milliseconds for which the maker of a seal is known. */
const sealLifetime = 86_400_000

/** Stands for a seal among the ids of calls. */
const idOfSeal = (seal: string): string => `seal ${seal.slice(-endOfSeal)}`

/** Sealed fields of calls that all nodes read, by caller and call. */
export interface SharedCalls {
  /** Succeeds also if the store does not answer. */
  readonly put: (owner: string, callId: string, text: string) => Effect.Effect<void>
  readonly get: (owner: string, callId: string) => Effect.Effect<string | undefined, unknown>
}

/** The shared store's part; `undefined` without a shared store. */
export const CurrentSharedCalls = Context.Reference<SharedCalls | undefined>("model-gateway/completion/SharedCalls", {
  defaultValue: () => undefined
})

/** Sealed fields, and the name of the upstream that can read them. */
interface Sealed {
  readonly upstream: string
  readonly fields: JsonFields
  /** Where not every account of the upstream can read them: who can. */
  readonly maker: Maker | undefined
}

/** A list of the upstream and the fields, and of the account and organisation of a maker. */
const encodeSealed = ({ fields, maker, upstream }: Sealed): string => {
  const { account, organization } = maker ?? {}
  return JSON.stringify([upstream, fields, account, organization].filter((part) => part !== undefined))
}

const readSealed = Schema.decodeUnknownOption(
  Schema.fromJsonString(
    Schema.Tuple([Schema.String, ParsedObject, Schema.optionalKey(Schema.String), Schema.optionalKey(Schema.String)])
  )
)

/** What a node has written; none in the form of another version. */
const decodeSealed = (text: string): Option.Option<Sealed> =>
  Option.map(readSealed(text), ([upstream, fields, account, organization]) => ({
    upstream,
    fields,
    maker: account === undefined ? undefined : { upstream, account, organization }
  }))

interface Kept {
  readonly sealed: Sealed
  readonly bytes: number
  /** Monotonic milliseconds. */
  readonly since: number
}

interface Owner {
  readonly calls: Map<string, Kept>
  bytes: number
}

export class SealedCalls {
  readonly #owners = new Map<string, Owner>()
  #count = 0
  #bytes = 0
  readonly #now: () => number
  readonly #shared: SharedCalls | undefined
  /** Calls that need no look-up, oldest first; at most `mostCalls`. */
  readonly #known = new Set<string>()

  /** `now` is the monotonic clock's milliseconds. */
  constructor(now: () => number, shared?: SharedCalls) {
    this.#now = now
    this.#shared = shared
  }

  /**
   * Keeps what belongs to a call; replaces what was kept of it. With a shared store returns the effect that writes it there, which
   * has to run before the client sees the call.
   */
  keep(owner: string, callId: string, sealed: Sealed): Effect.Effect<void> | undefined {
    const text = encodeSealed(sealed)
    if (2 * text.length > largest) return undefined
    this.#insert(owner, callId, sealed, 2 * text.length)
    if (this.#shared === undefined) return undefined
    this.#know(owner, callId)
    return this.#shared.put(owner, callId, text)
  }

  /** Keeps who made a seal, as `keep` keeps a call. */
  keepMaker(owner: string, seal: string, maker: Maker): Effect.Effect<void> | undefined {
    const { upstream } = maker
    return this.keep(owner, idOfSeal(seal), { upstream, fields: {}, maker })
  }

  /** Who made a seal, as far as that is known. */
  makerOf(owner: string, seal: string): Maker | undefined {
    const kept = this.#owners.get(owner)?.calls.get(idOfSeal(seal))
    return kept === undefined || this.#now() - kept.since >= sealLifetime ? undefined : kept.sealed.maker
  }

  /** Who made the newest seal of a conversation, or what was kept of its newest call. Looks at `mostTurns` turns. */
  newestMaker(owner: string, { turns, vendorFields }: Conversation): Maker | undefined {
    const of = this.#owners.get(owner)
    if (of === undefined) return undefined
    const seals = vendorFields?.seals ?? []
    for (let i = seals.length - 1; i >= 0; i--) {
      const maker = this.makerOf(owner, seals[i]!)
      if (maker !== undefined) return maker
    }
    const first = Math.max(0, turns.length - mostTurns)
    for (let i = turns.length - 1; i >= first; i--) {
      for (const part of turns[i]!.parts) {
        const maker = part._tag === "Call" ? of.calls.get(part.id)?.sealed.maker : undefined
        if (maker !== undefined) return maker
      }
    }
    return undefined
  }

  /** The effect that looks up the unknown calls and seals of a conversation; `undefined` if all are known, or without a shared store. */
  lookUp(owner: string, { turns, vendorFields }: Conversation): Effect.Effect<void> | undefined {
    const shared = this.#shared
    if (shared === undefined) return undefined
    const unknown: Array<string> = []
    const seals = vendorFields?.seals ?? []
    for (let i = seals.length - 1; i >= 0 && unknown.length < mostLookedUp; i--) {
      const id = idOfSeal(seals[i]!)
      if (!this.#known.has(`${owner}\n${id}`)) unknown.push(id)
    }
    const first = Math.max(0, turns.length - mostTurns)
    for (let i = turns.length - 1; i >= first && unknown.length < mostLookedUp; i--) {
      for (const part of turns[i]!.parts) {
        if (part._tag !== "Call" || part.id.length > longestId || unknown.length >= mostLookedUp) continue
        if (!this.#known.has(`${owner}\n${part.id}`)) unknown.push(part.id)
      }
    }
    if (unknown.length === 0) return undefined
    return Effect.forEach(
      unknown,
      (callId) =>
        Effect.matchEager(shared.get(owner, callId), {
          onFailure: () => undefined,
          onSuccess: (text) => {
            this.#know(owner, callId)
            if (text === undefined) return
            const sealed = decodeSealed(text)
            if (Option.isSome(sealed)) this.#insert(owner, callId, sealed.value, 2 * text.length)
          }
        }),
      { concurrency: lookedUpAtOnce, discard: true }
    )
  }

  #know(owner: string, callId: string): void {
    this.#known.add(`${owner}\n${callId}`)
    if (this.#known.size > mostCalls) { for (const oldest of this.#known) return void this.#known.delete(oldest) }
  }

  #insert(owner: string, callId: string, sealed: Sealed, bytes: number): void {
    this.#forget(owner, callId)
    let of = this.#owners.get(owner)
    if (of === undefined) {
      of = { calls: new Map(), bytes: 0 }
      this.#owners.set(owner, of)
    }
    of.calls.set(callId, { sealed, bytes, since: this.#now() })
    of.bytes += bytes
    this.#count++
    this.#bytes += bytes
    while (this.#count > mostCalls || this.#bytes > mostBytes) this.#forgetOne()
  }

  /** The conversation with what an account may open of its calls, of the last `lifetime` milliseconds. */
  *restored(
    owner: string,
    conversation: Conversation,
    lifetime: number,
    account: Maker
  ): Cooperative<Conversation> {
    const of = this.#owners.get(owner)
    if (of === undefined) return conversation
    const slice = new Slice()
    const turns: Array<Turn> = []
    let isChanged = false
    for (const turn of conversation.turns) {
      if (slice.add(1, turn.parts.length)) yield slice.end()
      const parts = turn.role === "assistant"
        ? turn.parts.map((part) => this.#restoredPart(owner, of, part, lifetime, account))
        : turn.parts
      const isSame = parts.every((part, i) => part === turn.parts[i])
      isChanged ||= !isSame
      turns.push(isSame ? turn : { ...turn, parts })
    }
    return isChanged ? { ...conversation, turns } : conversation
  }

  /** True with a shared store. */
  get isShared(): boolean {
    return this.#shared !== undefined
  }

  /** Nothing is kept for the caller. */
  isEmpty(owner: string): boolean {
    return this.#count === 0 || !this.#owners.has(owner)
  }

  #restoredPart(owner: string, of: Owner, part: Part, lifetime: number, account: Maker): Part {
    if (part._tag !== "Call") return part
    const kept = of.calls.get(part.id)
    if (kept === undefined) return part
    if (this.#now() - kept.since >= lifetime) {
      this.#forget(owner, part.id)
      return part
    }
    const { fields, maker, upstream } = kept.sealed
    const isReadable = maker === undefined ? upstream === account.upstream : mayOpen(maker, account)
    return isReadable ? { ...part, sealed: { ...fields, ...part.sealed } } : part
  }

  #forget(owner: string, callId: string): void {
    const of = this.#owners.get(owner)
    const kept = of?.calls.get(callId)
    if (of === undefined || kept === undefined) return
    of.calls.delete(callId)
    of.bytes -= kept.bytes
    this.#count--
    this.#bytes -= kept.bytes
    if (of.calls.size === 0) this.#owners.delete(owner)
  }

  #forgetOne(): void {
    let most: readonly [string, Owner] | undefined
    const size = ({ bytes, calls }: Owner) => bytes / mostBytes + calls.size / mostCalls
    for (const entry of this.#owners) if (most === undefined || size(entry[1]) > size(most[1])) most = entry
    for (const callId of most?.[1].calls.keys() ?? []) return this.#forget(most![0], callId)
  }
}
