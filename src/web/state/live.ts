/**
 * The gateway's events, read while somebody is signed in, and what they report.
 */
import * as Sse from "effect/encoding/Sse"
import * as Option from "effect/Option"
import type * as AsyncResult from "effect/reactivity/AsyncResult"
import * as Atom from "effect/reactivity/Atom"
import * as Schema from "effect/Schema"
import { useEffect } from "preact/hooks"
import type { AdminEvent } from "../../api.ts"
import { read } from "./actions.ts"
import { at, credentials, type RequestItem, signedOut } from "./client.ts"
import { parsed } from "./json.ts"
import { accountName } from "./names.ts"
import { reload } from "./reads.ts"
import { registry, useAtom } from "./registry.ts"

/** Whether events arrive. */
export const connectionAtom = Atom.keepAlive(Atom.make<"connecting" | "live" | "reconnecting">("connecting"))

/** When the last event arrived, and when the next connection is tried, by the page's clock. */
export const contactAtom = Atom.keepAlive(
  Atom.make<{ readonly last: number; readonly next: number }>({ last: 0, next: 0 })
)

type LiveEvent = typeof AdminEvent.Type

/** The data of a kind of event. */
type DataOf<Kind extends LiveEvent["event"]> = Extract<LiveEvent, { readonly event: Kind }>["data"]

/** The pool, as an event reports it. Figures that are read once lack `failed_tests`. */
export type PoolNow = Omit<DataOf<"pool">, "failed_tests"> & Partial<Pick<DataOf<"pool">, "failed_tests">>

/** The queue, as an event reports it. */
type QueueNow = DataOf<"queue">

/** An account of an event. */
export type ChangedAccount = PoolNow["changed"][number]

export const poolAtom = Atom.keepAlive(Atom.make<PoolNow | undefined>(undefined))
/** The queue, and when the page received it, by the page's clock. */
export const queueAtom = Atom.keepAlive(Atom.make<QueueNow & { readonly at: number } | undefined>(undefined))

/** An account, and when the page received it, by the page's clock. */
export interface Received {
  readonly item: ChangedAccount
  readonly at: number
}

const receivedLimit = 1_000

/** The accounts of recent events, by name: newer than lists. Holds the latest 1,000. */
export const receivedAtom = Atom.keepAlive(Atom.make<ReadonlyMap<string, Received>>(new Map()))

type Listener = (items: ReadonlyArray<RequestItem>) => void
const listeners = new Set<Listener>()

/** Calls `listener` with each batch of changed requests. Returns a function that unregisters it. */
export const onRequests = (listener: Listener): () => void => {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

const resetListeners = new Set<() => void>()

/** Calls `listener` when events were missed and views may be outdated. Returns a function that unregisters it. */
export const onReset = (listener: () => void): () => void => {
  resetListeners.add(listener)
  return () => void resetListeners.delete(listener)
}

/** Events were missed: views that follow them are read again. */
export const resetLists = (): void => resetListeners.forEach((listener) => listener())

const receivePool = (pool: PoolNow): void => {
  registry.set(poolAtom, pool)
  if (pool.changed.length === 0) return
  const now = Date.now()
  registry.update(receivedAtom, (known) => {
    const next = new Map(known)
    for (const item of pool.changed) {
      const name = accountName(item)
      next.delete(name)
      next.set(name, { item, at: now })
    }
    for (const name of next.keys()) {
      if (next.size <= receivedLimit) break
      next.delete(name)
    }
    return next
  })
}

let revision: string | undefined

/** Reloads everything that a change of the configuration may affect. */
const receiveRevision = (next: string): void => {
  if (revision !== undefined && revision !== next) {
    void reload("accounts", "keys", "config", "settings", "upstreams", "routes", "host")
  }
  revision = next
}

let connected = false

/** A new connection reports all accounts that are in use or out of rotation: what was received before may be outdated. */
const receiveHello = (): void => {
  registry.set(receivedAtom, new Map())
  if (connected) void reload("accounts")
  connected = true
}

let reset: ReturnType<typeof setTimeout> | undefined

/** Resets the lists, at most once a second: an event contained only a part of the changed requests. */
const resetSoon = (): void => {
  reset ??= setTimeout(() => {
    reset = undefined
    resetLists()
  }, 1_000)
}

/** How events are read, which the contract says. */
const loadDecode = () => import("./contract.ts").then((contract) => Schema.decodeUnknownOption(contract.AdminEvent))

const receive = (decoded: LiveEvent | undefined): void => {
  switch (decoded?.event) {
    // Of another version of the gateway: what it reports is read.
    case undefined:
      return resetSoon()
    case "hello":
      return receiveHello()
    case "pool":
      return receivePool(decoded.data)
    case "queue":
      return registry.set(queueAtom, { ...decoded.data, at: Date.now() })
    case "requests":
      if (decoded.data.more) resetSoon()
      return listeners.forEach((listener) => listener(decoded.data.items))
    case "config":
      return receiveRevision(decoded.data.revision)
    case "reset":
      return resetLists()
    case "session_ended":
      return signedOut()
  }
}

/** Reads the figures once, in place of events: the gateway limits how many event streams are open. */
const readFigures = async (signal: AbortSignal): Promise<void> => {
  const status = await read((client) => client["admin-accounts"].queue(), signal)
  registry.set(poolAtom, { ...status, changed: [], more: status.in_use > 0 })
  registry.set(queueAtom, { ...status, at: Date.now() })
  registry.update(contactAtom, (now) => ({ ...now, last: Date.now() }))
}

const longestDelay = 10_000

/** The gateway sends a heartbeat every 5 seconds. After this many milliseconds without one the connection is lost. */
export const longestSilence = 12_000

/** A signal that aborts with `signal`, or when `heard` was not called for `longestSilence`. */
const silence = (signal: AbortSignal) => {
  const lost = new AbortController()
  const abort = () => lost.abort()
  let timer = setTimeout(abort, longestSilence)
  signal.addEventListener("abort", abort, { once: true })
  return {
    signal: lost.signal,
    heard: () => {
      clearTimeout(timer)
      timer = setTimeout(abort, longestSilence)
      registry.update(contactAtom, (now) => ({ ...now, last: Date.now() }))
    },
    end: () => {
      clearTimeout(timer)
      signal.removeEventListener("abort", abort)
      abort()
    }
  }
}

/**
 * Reads events until the signal. Reconnects when the connection is lost or silent, after a delay that doubles up to 10
 * seconds.
 */
export const readEvents = async (signal: AbortSignal): Promise<void> => {
  let last: string | undefined
  let delay = 500
  registry.set(connectionAtom, "connecting")
  while (!signal.aborted) {
    const contact = silence(signal)
    try {
      const response = await fetch(at("/admin/events"), {
        signal: contact.signal,
        headers: {
          accept: "text/event-stream",
          ...(last === undefined ? {} : { "last-event-id": last }),
          ...credentials()
        }
      })
      if (response.status === 401) return signedOut()
      if (!response.ok || response.body === null) throw new Error(`status ${response.status}`)
      contact.heard()
      registry.set(connectionAtom, "live")
      delay = 500
      const decode = await loadDecode()
      const parser = Sse.makeParser((event) => {
        if (event._tag !== "Event") return
        last = event.id ?? last
        receive(Option.getOrUndefined(decode({ ...event, id: event.id ?? "", data: parsed(event.data) })))
      })
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
      for (;;) {
        const { done, value } = await reader.read()
        if (done) break
        contact.heard()
        // One redraw a chunk.
        Atom.batch(() => void parser.feed(value))
      }
    } catch {
      // Not connected: tries again below.
    } finally {
      contact.end()
    }
    if (signal.aborted) return
    registry.update(contactAtom, (now) => ({ ...now, next: Date.now() + delay }))
    registry.set(connectionAtom, "reconnecting")
    void readFigures(signal).catch(() => undefined)
    await new Promise((resolve) => {
      setTimeout(resolve, delay)
      signal.addEventListener("abort", resolve, { once: true })
    })
    delay = Math.min(delay * 2, longestDelay)
  }
}

/** The time, updated every second while something shows it. */
export const clockAtom = Atom.make((get): number => {
  const timer = setInterval(() => get.setSelf(Date.now()), 1_000)
  get.addFinalizer(() => clearInterval(timer))
  return Date.now()
})

/** Reads something again every `pause` milliseconds while the view is shown and events arrive: no event reports it. */
export const useReread = <A, E>(atom: Atom.Atom<AsyncResult.AsyncResult<A, E>>, pause = 5_000): void => {
  const isLive = useAtom(connectionAtom) === "live"
  useEffect(() => {
    if (!isLive) return
    const timer = setInterval(() => {
      if (!document.hidden && !registry.get(atom).waiting) registry.refresh(atom)
    }, pause)
    return () => clearInterval(timer)
  }, [atom, isLive])
}
