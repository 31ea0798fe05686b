/**
 * The form of a key: its limits stand in a table, with a field for each window and kind.
 */
import { at, type Entry, type FormField } from "../../forms/fields.ts"
import type { KeyItem } from "./keys.ts"

const rowPrefix = "limits[]."

/** What a limit does, in the last columns of the table. */
export const limitRules = ["strict", "fallback"] as const

/** Fields of a limit that are no limit by themselves. */
const outsideTable: ReadonlyArray<string> = ["window", ...limitRules]

/** What limits count, and the windows in which they do. */
export interface LimitTable {
  readonly windows: ReadonlyArray<string>
  readonly kinds: ReadonlyArray<string>
}

export const limitTable = (fields: ReadonlyArray<FormField>): LimitTable => {
  const rows = fields.filter(({ path }) => path.startsWith(rowPrefix))
  const windows = rows.find(({ path }) => path === `${rowPrefix}window`)?.choices ?? []
  return {
    windows,
    kinds: rows.map(({ path }) => path.slice(rowPrefix.length)).filter((kind) => !outsideTable.includes(kind))
  }
}

/** The path of the field of a window and kind. */
export const limitPath = (window: string, kind: string): string => `limits.${window}.${kind}`

/** The fields with one for each window and kind in place of the list of limits. */
export const formFields = (fields: ReadonlyArray<FormField>): ReadonlyArray<FormField> => {
  const rows = fields.filter(({ path }) => path.startsWith(rowPrefix) && path !== `${rowPrefix}window`)
  const limits = limitTable(fields).windows.flatMap((window) =>
    rows.map((field) => ({ ...field, path: limitPath(window, field.path.slice(rowPrefix.length)) }))
  )
  return [...fields.filter(({ path }) => path !== "limits" && !path.startsWith(rowPrefix)), ...limits]
}

/** The entry of the form: the limits by window. */
export const entryOf = ({ limits, usage: _usage, ...item }: KeyItem): Entry => ({
  ...item,
  limits: Object.fromEntries(limits.map(({ window, ...kinds }) => [window, kinds]))
})

/** The changes of a key: limits are replaced as a whole, so that they come from all values of the form. */
export const payloadOf = (changes: Entry, values: Entry): Entry => {
  if (changes["limits"] === undefined) return changes
  const limits = Object.entries(at(values, "limits") as Entry).flatMap(([window, kinds]) =>
    Object.entries(kinds as Entry).every(([kind, value]) => value === null || outsideTable.includes(kind))
      ? []
      : [{ window, ...kinds as Entry }]
  )
  return { ...changes, limits }
}
