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
    return [limit?.requests ?? null, limit?.tokens ?? null, limit?.cost ?? null]
  }))

/** Separators between groups of three digits, as people write them. */
const grouped = /^\d{1,3}([ ,.'’_\u00a0\u202f]\d{3})+$/

/** A written whole number, with or without separators of thousands: `null` if the text is empty, `undefined` for other texts. */
export const wholeNumber = (text: string): number | null | undefined => {
  const given = text.trim()
  if (given === "") return null
  if (!/^\d+$/.test(given) && !grouped.test(given)) return undefined
  const value = Number(given.replaceAll(/\D/g, ""))
  return Number.isSafeInteger(value) ? value : undefined
}

/** A written amount of money as a decimal number: `null` if the text is empty, `undefined` for other texts. */
export const amount = (text: string): string | null | undefined => {
  const given = text.trim()
  if (given === "") return null
  if (/^\d+(\.\d{1,9})?$/.test(given)) return given
  return /^\d{1,3}([ ,'’_\u00a0\u202f]\d{3})+(\.\d{1,9})?$/.test(given) ? given.replaceAll(/[^\d.]/g, "") : undefined
}

/** The kinds of limits in the form. */
export const limitKinds = ["requests", "tokens", "cost"] as const

/** Reads the form by the names of its fields. Returns the text that is not a number in place of a draft. */
export const readDraft = (read: (name: string) => string, hasCost: boolean, before: KeyItem["limits"] = []) => {
  const wrong: Array<string> = []
  const take = <A>(name: string, parse: (text: string) => A | undefined): A | null => {
    const value = parse(read(name))
    if (value === undefined) wrong.push(read(name).trim())
    return value ?? null
  }
  const max_inflight = take("max_inflight", wholeNumber)
  const limits = windows.flatMap((window) => {
    const requests = take(`${window}.requests`, wholeNumber)
    const tokens = take(`${window}.tokens`, wholeNumber)
    // Without a currency the form has no field for a limit of cost, which stays.
    const cost = hasCost
      ? take(`${window}.cost`, amount)
      : before.find((limit) => limit.window === window)?.cost ?? null
    return requests === null && tokens === null && cost === null ? [] : [{ window, requests, tokens, cost }]
  })
  const draft: KeyDraft = {
    name: read("name"),
    note: read("note"),
    disabled: read("disabled") !== "",
    expires_at: read("expires_at"),
    models: read("models"),
    max_inflight,
    limits
  }
  return { draft, wrong: wrong[0] }
}

const namesOf = (text: string): ReadonlyArray<string> =>
  text.split("\n").map((name) => name.trim()).filter((name) => name !== "")

/** What the form changes of a key. */
type KeyFields = Pick<KeyItem, "name" | "note" | "disabled" | "expires_at" | "models" | "max_inflight" | "limits">

/** The fields of a key without any. */
export const newKey: KeyFields = {
  name: null,
  note: null,
  disabled: false,
  expires_at: null,
  models: null,
  max_inflight: null,
  limits: []
}

/**
 * The fields that differ from the key as it was when the form opened. Unchanged fields are left out, so that a concurrent
 * change is not reverted and a time keeps its seconds.
 */
export const changesOf = (item: KeyFields, draft: KeyDraft) => {
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
