/**
 * Settings as texts of the form, and the values of these texts.
 */
import type { Reply } from "../../state/client.ts"

export type SettingsFields = Reply<"admin-settings", "fields">
export type Field = SettingsFields["fields"][number]
type Json = Field["configured"]

/** Texts of edited fields, by the field's path. */
export type Drafts = ReadonlyMap<string, string>

const isObject = (value: Json): value is { readonly [name: string]: Json } =>
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

/** The value of a text. A text that is not of the field's type is returned unchanged, for the gateway to refuse. */
export const valueOf = (field: Field, text: string): Json => {
  const trimmed = text.trim()
  if (trimmed === "") return null
  switch (field.type) {
    case "integer":
    case "number":
      return Number.isFinite(Number(trimmed)) ? Number(trimmed) : trimmed
    case "boolean":
      return trimmed === "true" ? true : trimmed === "false" ? false : trimmed
    case "map":
      return Object.fromEntries(
        trimmed.split("\n").filter((line) => line.trim() !== "").map((line) => {
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

/** The fields whose draft differs from the configured value. */
export const changesOf = (fields: ReadonlyArray<Field>, drafts: Drafts): ReadonlyArray<Field> =>
  fields.filter((field) => {
    const draft = drafts.get(field.path)
    return draft !== undefined &&
      JSON.stringify(valueOf(field, draft)) !== JSON.stringify(valueOf(field, textOf(field.configured)))
  })

/** The request body of a change: groups with their fields. */
export const patchOf = (changes: ReadonlyArray<Field>, drafts: Drafts): Readonly<Record<string, unknown>> => {
  const patch: Record<string, unknown> = {}
  for (const field of changes) {
    const value = valueOf(field, drafts.get(field.path) ?? "")
    const path = field.path.split(".")
    let group = patch
    for (const name of path.slice(0, -1)) group = (group[name] ??= {}) as Record<string, unknown>
    group[path.at(-1)!] = value
  }
  return patch
}

/** The field that contains the place of a fault. */
export const fieldAt = (fields: ReadonlyArray<Field>, place: string): Field | undefined =>
  fields.find(({ path }) => place === path || place.startsWith(`${path}.`) || place.startsWith(`${path}[`))

/** Fields by group, in order of first appearance. */
export const groupsOf = (fields: ReadonlyArray<Field>): ReadonlyArray<readonly [string, ReadonlyArray<Field>]> => [
  ...Map.groupBy(fields, ({ path }) => path.split(".")[0]!)
]

/** Why a text is no value of a numeric field; `undefined` if it is one, or empty. */
export const faultOf = ({ maximum, minimum, type }: Field, text: string): "number" | "range" | undefined => {
  if ((type !== "integer" && type !== "number") || text.trim() === "") return undefined
  const value = Number(text)
  if (!Number.isFinite(value) || (type === "integer" && !Number.isInteger(value))) return "number"
  return (minimum !== null && value < minimum) || (maximum !== null && value > maximum) ? "range" : undefined
}

/** Whether a field is a size in bytes, which is shown in larger units too. */
export const isSize = ({ path, type }: Field): boolean => type === "integer" && path.endsWith("bytes")

/** A name of a field that has none in the texts: its path's last word in plain letters. */
export const plainName = (path: string): string => {
  const name = path.split(".").at(-1)!.replaceAll("_", " ")
  return name.charAt(0).toUpperCase() + name.slice(1)
}

/** Whether a field is what somebody looks for, by its path, name or description. */
export const isSought = (field: Field, name: string, sought: string): boolean =>
  [field.path, name, field.description].some((text) => text.toLowerCase().includes(sought.toLowerCase()))
