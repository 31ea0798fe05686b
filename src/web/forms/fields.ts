/**
 * Fields of the configuration as texts of a form, and the values of these texts. The gateway describes the fields.
 */
import type { Reply } from "../state/client.ts"

export type SettingsFields = Reply<"admin-settings", "fields">
/** A setting with its values. */
export type Setting = SettingsFields["fields"][number]
/** The kinds of entries that have a form. */
export type EntryKind = keyof SettingsFields["entries"]

export type Json = Setting["configured"]
/** An entry of the configuration, or changes of one. */
export type Entry = Readonly<Record<string, Json>>

/** A field of a form. */
export type FormField = SettingsFields["entries"][EntryKind][number] & {
  /** How its values are written, if not in the way of its type. */
  readonly codec?: Codec
}

/** How a value is written; an empty text is no value. */
export interface Codec {
  readonly text: (value: Json) => string
  readonly value: (text: string) => Json
}

/** Texts of fields, by path. */
export type Texts = ReadonlyMap<string, string>

const isObject = (value: Json | undefined): value is Entry =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The text of a value; empty if it is not set. */
export const textOf = (value: Json): string => {
  if (value === null) return ""
  if (isObject(value)) {
    return Object.entries(value)
      .map(([name, of]) => `${name} = ${typeof of === "string" ? of : JSON.stringify(of)}`)
      .join("\n")
  }
  return typeof value === "string" ? value : JSON.stringify(value)
}

/** A time in the form of the browser's date field: local time, to the minute. */
export const asLocal = (time: string): string => {
  const date = new Date(time)
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

/** The lines of a text that are not empty. */
export const linesOf = (text: string): ReadonlyArray<string> =>
  text.split("\n").map((line) => line.trim()).filter((line) => line !== "")

/** Separators between groups of three digits, as people write them. */
const grouped = /^\d{1,3}([ ,.'’_\u00a0\u202f]\d{3})+$/

/** A written whole number, with or without separators of thousands; `undefined` for other texts. */
export const wholeNumber = (text: string): number | undefined => {
  const given = text.trim()
  if (!/^\d+$/.test(given) && !grouped.test(given)) return undefined
  const value = Number(given.replaceAll(/\D/g, ""))
  return Number.isSafeInteger(value) ? value : undefined
}

/** A written decimal number, without separators of thousands; `undefined` for other texts. */
export const decimal = (text: string): string | undefined => {
  const given = text.trim()
  if (/^\d+(\.\d{1,9})?$/.test(given)) return given
  return /^\d{1,3}([ ,'’_\u00a0\u202f]\d{3})+(\.\d{1,9})?$/.test(given) ? given.replaceAll(/[^\d.]/g, "") : undefined
}

/** A number where that keeps every digit. */
const exact = (text: string): Json => String(Number(text)) === text ? Number(text) : text

/** The text of a field's value in its input. */
export const textIn = ({ codec, type }: FormField, value: Json): string => {
  if (codec !== undefined) return value === null ? "" : codec.text(value)
  if (Array.isArray(value)) return value.map(textOf).join("\n")
  return type === "time" && typeof value === "string" ? asLocal(value) : textOf(value)
}

/** The value of a text. A text that is not of the field's type is returned unchanged, for the gateway to refuse. */
export const valueOf = ({ choices, codec, type }: FormField, text: string): Json => {
  const trimmed = text.trim()
  if (trimmed === "") return null
  if (codec !== undefined) return codec.value(trimmed)
  switch (type) {
    case "integer":
    case "number":
      return (type === "integer" ? wholeNumber(trimmed) : undefined) ??
        (Number.isFinite(Number(trimmed)) ? Number(trimmed) : trimmed)
    case "decimal":
      return exact(decimal(trimmed) ?? trimmed)
    case "boolean":
      return trimmed === "true" ? true : trimmed === "false" ? false : trimmed
    case "time":
      return Number.isNaN(Date.parse(trimmed)) ? trimmed : new Date(trimmed).toISOString()
    case "list":
      return choices?.includes(trimmed) === true ? trimmed : linesOf(trimmed)
    case "choices":
      return linesOf(trimmed)
    case "map":
      return Object.fromEntries(
        linesOf(trimmed).map((line) => {
          const [name = "", ...rest] = line.split("=")
          return [name.trim(), rest.join("=").trim()]
        })
      )
    default:
      return trimmed
  }
}

/** The numbers, from 1, of the lines of a map that are not of the form `name = value`. */
export const faultyLines = (text: string): ReadonlyArray<number> =>
  text.split("\n").flatMap((line, index) => line.trim() === "" || /^[^=]*\S[^=]*=\s*\S/.test(line) ? [] : [index + 1])

/** The value at a dotted path of an entry; `null` if it is not set. */
export const at = (entry: Entry, path: string): Json =>
  path.split(".").reduce<Json>((value, name) => isObject(value) ? value[name] ?? null : null, entry)

/** The texts of an entry's values. */
export const textsOf = (fields: ReadonlyArray<FormField>, entry: Entry): Texts =>
  new Map(fields.map((field) => [field.path, textIn(field, at(entry, field.path))]))

/** The texts of the configured values of settings. */
export const configuredTexts = (settings: ReadonlyArray<Setting>): Texts =>
  new Map(settings.map((setting) => [setting.path, textIn(setting, setting.configured)]))

/** The fields whose text stands for another value than before. Fields without a text are unchanged. */
export const changesOf = <Field extends FormField>(
  fields: ReadonlyArray<Field>,
  before: Texts,
  now: Texts
): ReadonlyArray<Field> =>
  fields.filter((field) => {
    const text = now.get(field.path)
    return text !== undefined &&
      JSON.stringify(valueOf(field, text)) !== JSON.stringify(valueOf(field, before.get(field.path) ?? ""))
  })

/** The values of these fields, at their paths; `null` where a text is empty. */
export const patchOf = (fields: ReadonlyArray<FormField>, texts: Texts): Entry => {
  const patch: Record<string, Json> = {}
  for (const field of fields) {
    const path = field.path.split(".")
    let group = patch
    for (const name of path.slice(0, -1)) group = (group[name] ??= {}) as Record<string, Json>
    group[path.at(-1)!] = valueOf(field, texts.get(field.path) ?? "")
  }
  return patch
}

/** The field that contains the place of a fault. */
export const fieldAt = <Field extends FormField>(fields: ReadonlyArray<Field>, place: string): Field | undefined =>
  fields.find(({ path }) => place === path || place.startsWith(`${path}.`) || place.startsWith(`${path}[`))

/** Fields by group, in order of first appearance. */
export const groupsOf = <Field extends FormField>(
  fields: ReadonlyArray<Field>
): ReadonlyArray<readonly [string, ReadonlyArray<Field>]> => [
  ...Map.groupBy(fields, ({ path }) => path.split(".")[0]!)
]

/** Why a text is no value of a numeric field; `undefined` if it is one, or empty. */
export const faultOf = (field: FormField, text: string): "number" | "range" | undefined => {
  const { maximum, minimum, type } = field
  if ((type !== "integer" && type !== "number") || text.trim() === "") return undefined
  const value = valueOf(field, text)
  if (typeof value !== "number" || (type === "integer" && !Number.isInteger(value))) return "number"
  return (minimum !== null && value < minimum) || (maximum !== null && value > maximum) ? "range" : undefined
}

/** Whether a field is a size in bytes, which is shown in larger units too. */
export const isSize = ({ path, type }: FormField): boolean => type === "integer" && path.endsWith("bytes")

/** A name of a field that has none in the texts: its path's last word in plain letters. */
export const plainName = (path: string): string => {
  const name = path.split(".").at(-1)!.replaceAll("_", " ")
  return name.charAt(0).toUpperCase() + name.slice(1)
}

/** Whether a field is what somebody looks for, by its path, name or description. */
export const isSought = (field: FormField, name: string, sought: string): boolean =>
  [field.path, name, field.description].some((text) => text.toLowerCase().includes(sought.toLowerCase()))
