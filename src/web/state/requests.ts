/**
 * Records of requests, as the admin API tells them.
 */
import { read } from "./actions.ts"
import type { AdminClient, Reply } from "./client.ts"
import { isMissing } from "./failure.ts"

/** What a list is narrowed to; empty texts narrow nothing. */
export interface RequestFilter {
  readonly status: string
  readonly style: string
  readonly model: string
  readonly key: string
  readonly account: string
}

export type RequestPage = Reply<"admin-requests", "list">
/** One record with its bodies. */
export type RequestRecord = Reply<"admin-requests", "get">
export type RecordedFrame = RequestRecord["upstream"][number]["frames"][number]

type Query = NonNullable<Parameters<AdminClient["admin-requests"]["list"]>[0]>["query"]

/** A page of the list, newest first. */
export const listRequests = (
  filter: RequestFilter,
  limit: number,
  cursor: string | undefined,
  signal: AbortSignal
): Promise<RequestPage> => {
  const given = Object.fromEntries(
    Object.entries(filter).flatMap(([name, value]) => value.trim() === "" ? [] : [[name, value.trim()]])
  )
  const query: Query = { limit, ...(cursor === undefined ? {} : { cursor }), ...given }
  return read((client) => client["admin-requests"].list({ query }), signal)
}

/** One record; `undefined` where there is none. */
export const readRequest = async (id: string, signal: AbortSignal): Promise<RequestRecord | undefined> => {
  try {
    return await read((client) => client["admin-requests"].get({ params: { id } }), signal)
  } catch (failure) {
    if (isMissing(failure)) return undefined
    throw failure
  }
}
