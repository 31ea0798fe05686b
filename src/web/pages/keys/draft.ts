/**
 * The form of a key, and the changes that it makes.
 */
import type { KeyItem } from "./keys.ts"

export const windows = ["minute", "hour", "day", "week", "month"] as const

/** The form's fields. An empty number is `null`. */
export interface KeyDraft {
  readonly name: string
  readonly note: string
  readonly disabled: boolean
  /** Local time, to the minute. */
  readonly expires_at: string
  /** One per line. */
  readonly models: string
  readonly max_inflight: number | null
  readonly limits: ReadonlyArray<Limit>
}

type Limit = KeyItem["limits"][number]

/** A time in the form of the browser's date field: local time, to the minute. */
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
 * The fields that differ from the key as it was when the form opened. Unchanged fields are left out, so that a concurrent
 * change is not reverted and a time keeps its seconds.
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
