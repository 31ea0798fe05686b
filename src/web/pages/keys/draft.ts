/**
 * What is written in the form of a key, and what of it is a change.
 */
import type { Reply } from "../../state/client.ts"

export type KeyItem = Reply<"admin-keys", "list">["items"][number]

export const windows = ["minute", "hour", "day", "week", "month"] as const
export type Window = (typeof windows)[number]

/** The form's fields as they are written; numbers are there, or `null` where their field is empty. */
export interface KeyDraft {
  readonly name: string
  readonly note: string
  readonly disabled: boolean
  /** By the clock of the person at the page, to the minute. */
  readonly expires_at: string
  /** One a line. */
  readonly models: string
  readonly max_inflight: number | null
  readonly limits: ReadonlyArray<Limit>
}

type Limit = KeyItem["limits"][number]

/** A time as the browser's field has it: by the clock of the person at the page, to the minute. */
export const asLocal = (time: string | null): string => {
  if (time === null) return ""
  const date = new Date(time)
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

const inOrder = (limits: ReadonlyArray<Limit>): string =>
  JSON.stringify(windows.map((window) => {
    const limit = limits.find((each) => each.window === window)
    return [limit?.requests ?? null, limit?.tokens ?? null]
  }))

const namesOf = (text: string): ReadonlyArray<string> =>
  text.split("\n").map((name) => name.trim()).filter((name) => name !== "")

/**
 * The fields that say something else than the key did when the form was opened. What stays is left out, so that nothing is
 * taken back that somebody else changed meanwhile, and a time keeps its seconds.
 */
export const changesOf = (item: KeyItem, draft: KeyDraft) => {
  const name = draft.name.trim()
  const note = draft.note.trim()
  const models = namesOf(draft.models)
  return {
    ...(name === (item.name ?? "").trim() ? {} : { name: name || null }),
    ...(note === (item.note ?? "").trim() ? {} : { note: note || null }),
    ...(draft.disabled === item.disabled ? {} : { disabled: draft.disabled }),
    ...(draft.expires_at === asLocal(item.expires_at)
      ? {}
      : { expires_at: draft.expires_at === "" ? null : new Date(draft.expires_at).toISOString() }),
    ...(JSON.stringify(models) === JSON.stringify(item.models ?? [])
      ? {}
      : { models: models.length === 0 ? null : models }),
    ...(draft.max_inflight === item.max_inflight ? {} : { max_inflight: draft.max_inflight }),
    ...(inOrder(draft.limits) === inOrder(item.limits) ? {} : { limits: draft.limits })
  }
}
