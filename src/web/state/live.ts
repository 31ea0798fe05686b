/**
 * What changes by itself: the gateway's events, read as long as somebody is signed in.
 */
import * as Sse from "effect/encoding/Sse"
import * as Atom from "effect/reactivity/Atom"
import { read, reload } from "./actions.ts"
import { at, credentials, signedOut } from "./client.ts"
import { registry } from "./registry.ts"
import type { AccountItem, PoolNow, QueueNow, RequestItem } from "./types.ts"

/** Whether changes come in. */
export const connectionAtom = Atom.keepAlive(Atom.make<"connecting" | "live" | "reconnecting">("connecting"))

export const poolAtom = Atom.keepAlive(Atom.make<PoolNow | undefined>(undefined))
/** The queue, and when the page heard of it, by the page's clock. */
export const queueAtom = Atom.keepAlive(Atom.make<QueueNow & { readonly at: number } | undefined>(undefined))

/** An account and when the page heard of it, by the page's clock. */
export interface Heard {
  readonly item: AccountItem
  readonly at: number
}

const heardLimit = 1_000

/** Accounts that changed lately, by identifier: newer than what lists show. */
export const heardAtom = Atom.keepAlive(Atom.make<ReadonlyMap<string, Heard>>(new Map()))

type Listener = (items: ReadonlyArray<RequestItem>) => void
const listeners = new Set<Listener>()

/** Calls `listener` with each batch of changed requests. Returns what ends it. */
export const onRequests = (listener: Listener): () => void => {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

/** The configuration's revision, as the gateway told it last. */
export const revisionAtom = Atom.keepAlive(Atom.make<string | undefined>(undefined))

const resetListeners = new Set<() => void>()

/** Calls `listener` when events were missed: what it shows may be old. Returns what ends it. */
export const onReset = (listener: () => void): () => void => {
  resetListeners.add(listener)
  return () => void resetListeners.delete(listener)
}

interface Message {
  readonly event: string
  readonly data: string
}

const hear = (pool: PoolNow): void => {
  registry.set(poolAtom, pool)
  if (pool.changed.length === 0) return
  const now = Date.now()
  registry.update(heardAtom, (known) => {
    const next = new Map(known)
    for (const item of pool.changed) {
      next.delete(item.identifier)
      next.set(item.identifier, { item, at: now })
    }
    for (const identifier of next.keys()) {
      if (next.size <= heardLimit) break
      next.delete(identifier)
    }
    return next
  })
}

const reviseTo = (revision: string): void => {
  const known = registry.get(revisionAtom)
  registry.set(revisionAtom, revision)
  if (known !== undefined && known !== revision) reload("accounts", "keys", "config", "settings", "host")
}

let greeted = false

/** A new connection tells of all accounts that are in use or out of rotation: what else was heard may be over by now. */
const greet = (): void => {
  registry.set(heardAtom, new Map())
  if (greeted) reload("accounts")
  greeted = true
}

let telling: ReturnType<typeof setTimeout> | undefined

/** Has the lists read anew, once a second at most: an event told of a part of the requests that changed. */
const missSome = (): void => {
  telling ??= setTimeout(() => {
    telling = undefined
    resetListeners.forEach((listener) => listener())
  }, 1_000)
}

const receive = ({ data, event }: Message): void => {
  const value = JSON.parse(data)
  switch (event) {
    case "hello":
      return greet()
    case "pool":
      return hear(value)
    case "queue":
      return registry.set(queueAtom, { ...value, at: Date.now() })
    case "requests":
      if (value.more) missSome()
      return listeners.forEach((listener) => listener(value.items))
    case "config":
      return reviseTo(value.revision)
    case "reset":
      return resetListeners.forEach((listener) => listener())
    case "session_ended":
      return signedOut()
    default:
      return undefined
  }
}

/** Reads the figures once, for as long as no events come: the gateway gives out a limited number of streams. */
const readFigures = async (signal: AbortSignal): Promise<void> => {
  const status = await read((client) => client["admin-accounts"].queue(), signal)
  registry.set(poolAtom, { ...status, changed: [], more: status.in_use > 0 })
  registry.set(queueAtom, { ...status, at: Date.now() })
}

const longestDelay = 10_000

/** Reads the events until the signal; connects again, ever later, when the connection is lost. */
export const readEvents = async (signal: AbortSignal): Promise<void> => {
  let last: string | undefined
  let delay = 500
  registry.set(connectionAtom, "connecting")
  while (!signal.aborted) {
    try {
      const response = await fetch(at("/admin/events"), {
        signal,
        headers: {
          accept: "text/event-stream",
          ...(last === undefined ? {} : { "last-event-id": last }),
          ...credentials()
        }
      })
      if (response.status === 401) return signedOut()
      if (!response.ok || response.body === null) throw new Error(`status ${response.status}`)
      registry.set(connectionAtom, "live")
      delay = 500
      const parser = Sse.makeParser((event) => {
        if (event._tag !== "Event") return
        last = event.id ?? last
        receive(event)
      })
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
      for (;;) {
        const { done, value } = await reader.read()
        if (done) break
        // What a chunk changes is drawn once.
        Atom.batch(() => void parser.feed(value))
      }
    } catch {
      // The connection is lost, or was never there.
    }
    if (signal.aborted) return
    registry.set(connectionAtom, "reconnecting")
    await readFigures(signal).catch(() => undefined)
    await new Promise((resolve) => {
      setTimeout(resolve, delay)
      signal.addEventListener("abort", resolve, { once: true })
    })
    delay = Math.min(delay * 2, longestDelay)
  }
}

/** The time, once a second, while something counts down. */
export const clockAtom = Atom.make((get): number => {
  const timer = setInterval(() => get.setSelf(Date.now()), 1_000)
  get.addFinalizer(() => clearInterval(timer))
  return Date.now()
})
