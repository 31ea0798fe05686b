/**
 * Records of requests, as the admin API tells them.
 */
import { texts } from "./preferences.ts"
import { rest } from "./rest.ts"
import type { RequestItem } from "./types.ts"

/** What a list is narrowed to; empty texts narrow nothing. */
export interface RequestFilter {
  readonly status: string
  readonly style: string
  readonly model: string
  readonly key: string
  readonly account: string
}

export interface RequestPage {
  readonly enabled: boolean
  readonly limit: number
  readonly kept: number
  readonly items: ReadonlyArray<RequestItem>
  readonly next_cursor: string | null
}

export interface RecordedFrame {
  readonly at_ms: number
  readonly data: string
}

export interface RecordedCall {
  readonly id: string
  readonly name: string
  readonly arguments: string
}

export interface RecordedTurn {
  readonly role: string
  readonly text: string
  readonly calls: ReadonlyArray<RecordedCall>
  readonly call_id: string | null
}

export interface RecordedRound {
  readonly capture_id: string | null
  readonly label: string
  readonly attempt: number
  readonly url: string
  readonly account: string
  readonly status: number
  readonly request_body: string
  readonly frames: ReadonlyArray<RecordedFrame>
  readonly truncated: boolean
}

/** One record with its bodies. */
export interface RequestRecord extends RequestItem {
  readonly request: {
    readonly method: string
    readonly path: string
    readonly headers: Readonly<Record<string, string>>
    readonly body: string
    readonly truncated: boolean
  }
  readonly conversation: ReadonlyArray<RecordedTurn> | null
  readonly upstream: ReadonlyArray<RecordedRound>
  readonly reply: {
    readonly status: number
    readonly headers: Readonly<Record<string, string>>
    readonly frames: ReadonlyArray<RecordedFrame>
    readonly truncated: boolean
  } | null
  readonly tool_calls: ReadonlyArray<RecordedCall & { readonly at_ms: number }>
  readonly server_timing: string | null
}

const reply = async <A>(response: Response): Promise<A> => {
  const body = await response.json().catch(() => null) as A & { readonly detail?: string } | null
  if (response.ok && body !== null) return body
  throw new Error(body?.detail ?? texts().failures.status(response.status))
}

/** A page of the list, newest first. */
export const listRequests = async (
  filter: RequestFilter,
  limit: number,
  cursor: string | undefined,
  signal: AbortSignal
): Promise<RequestPage> => {
  const query = new URLSearchParams({ limit: String(limit) })
  if (cursor !== undefined) query.set("cursor", cursor)
  for (const [name, value] of Object.entries(filter)) {
    if (value.trim() !== "") query.set(name, value.trim())
  }
  return reply(await rest("GET", `/admin/requests?${query}`, { signal }))
}

/** One record; `undefined` where there is none. */
export const readRequest = async (id: string, signal: AbortSignal): Promise<RequestRecord | undefined> => {
  const response = await rest("GET", `/admin/requests/${encodeURIComponent(id)}`, { signal })
  return response.status === 404 ? undefined : reply(response)
}

/** Whether a request is one of those that the list is narrowed to. */
export const fits = (filter: RequestFilter, item: RequestItem): boolean => {
  const same = (wanted: string, ...found: ReadonlyArray<string | null>) =>
    wanted.trim() === "" || found.includes(wanted.trim())
  const status = filter.status.trim()
  const statusFits = status === "" || item.outcome === status || String(item.status) === status ||
    (/^[45]xx$/.test(status) && item.status !== null && String(item.status).startsWith(status[0]!))
  return statusFits && same(filter.style, item.style) && same(filter.model, item.model, item.native_model) &&
    same(filter.key, item.key) && same(filter.account, item.account)
}
