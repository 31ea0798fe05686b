/**
 * Request records: lists, one record, and how many requests run.
 */
import * as Atom from "effect/reactivity/Atom"
import { read } from "./actions.ts"
import type { AdminClient, Reply, RequestItem } from "./client.ts"
import { isMissing } from "./failure.ts"
import { onRequests, onReset } from "./live.ts"
import { pauseAfter, readOf } from "./reads.ts"

/** The filter of a list, as texts. An absent name or an empty text matches everything. */
export interface RequestFilter {
  readonly status?: string
  readonly outcome?: string
  readonly style?: string
  readonly key?: string
  readonly model?: string
  readonly account?: string
  readonly code?: string
  readonly upstream?: string
  readonly app?: string
  readonly session?: string
  /** A result of the prompt cache, or why a turn was no hit. */
  readonly prompt_cache?: string
  /** The least duration in milliseconds. */
  readonly min_ms?: string
  readonly from?: string
  readonly to?: string
  /** Searched in prompts and replies. */
  readonly text?: string
}

export type RequestPage = Reply<"admin-requests", "list">
/** One record with its bodies. */
export type RequestRecord = Reply<"admin-requests", "get">
export type RecordedFrame = RequestRecord["upstream"][number]["frames"][number]

export type RequestFacets = Reply<"admin-requests", "facets">

type Query = NonNullable<Parameters<AdminClient["admin-requests"]["facets"]>[0]>["query"]

const queryOf = ({ min_ms = "", ...texts }: RequestFilter): Query => ({
  ...Object.fromEntries(Object.entries(texts).filter(([, value]) => value !== "")),
  ...(min_ms === "" ? {} : { min_ms: Number(min_ms) })
})

/** The order of a list. */
export type RequestOrder = Pick<
  NonNullable<NonNullable<Parameters<AdminClient["admin-requests"]["list"]>[0]>["query"]>,
  "sort" | "order"
>

/** A page of the list in an order, else newest first. */
export const listRequests = (
  filter: RequestFilter,
  order: RequestOrder | undefined,
  limit: number,
  cursor: string | undefined,
  signal: AbortSignal
): Promise<RequestPage> => {
  const query = { limit, ...(cursor === undefined ? {} : { cursor }), ...order, ...queryOf(filter) }
  return read((client) => client["admin-requests"].list({ query }), signal)
}

/** How many requests match a filter, and how many of them have each value of a facet. */
export const countRequests = (filter: RequestFilter, signal: AbortSignal): Promise<RequestFacets> =>
  read((client) => client["admin-requests"].facets({ query: queryOf(filter) }), signal)

export type RequestHistogram = Reply<"admin-requests", "histogram">

/** The requests that match a filter by the time at which they began. */
export const readHistogram = (filter: RequestFilter, signal: AbortSignal): Promise<RequestHistogram> =>
  read((client) => client["admin-requests"].histogram({ query: queryOf(filter) }), signal)

/** The counts of `countRequests` as an atom. */
export const countsAtom = (filter: RequestFilter) => readOf("admin-requests", "facets", { query: queryOf(filter) })

/** One record; `undefined` when it does not exist. */
export const readRequest = (id: string, signal: AbortSignal): Promise<RequestRecord | undefined> =>
  read((client) => client["admin-requests"].get({ params: { id } }), signal).catch((failure: unknown) => {
    if (isMissing(failure)) return undefined
    throw failure
  })

/** How many requests run: the requests that were open when the page asked, updated by events; `undefined` while that is not known. */
export const runningAtom = Atom.make((get): number | undefined => {
  const open = new Set<string>()
  /** Requests that ended while a list is being read: the list may still contain them as open. */
  const closed = new Set<string>()
  let reading = 0
  let isRead = false
  let failures = 0
  let timer: ReturnType<typeof setTimeout> | undefined
  const ending = new AbortController()
  const update = (items: ReadonlyArray<RequestItem>) => {
    for (const { id, outcome } of items) {
      if (outcome === "open") {
        if (!closed.has(id)) open.add(id)
      } else {
        open.delete(id)
        if (reading > 0) closed.add(id)
      }
    }
    if (isRead) get.setSelf(open.size)
  }
  const readOpen = async () => {
    clearTimeout(timer)
    open.clear()
    reading += 1
    try {
      const query = { status: "open", limit: 200 } as const
      const { items } = await read((client) => client["admin-requests"].list({ query }), ending.signal)
      isRead = true
      failures = 0
      update(items)
    } catch {
      isRead = false
      if (!ending.signal.aborted) {
        get.setSelf(undefined)
        failures += 1
        timer = setTimeout(() => void readOpen(), pauseAfter(failures))
      }
    } finally {
      reading -= 1
      if (reading === 0) closed.clear()
    }
  }
  get.addFinalizer(onRequests(update))
  get.addFinalizer(onReset(readOpen))
  get.addFinalizer(() => {
    ending.abort()
    clearTimeout(timer)
  })
  void readOpen()
  return undefined
})
