/**
 * Settings as the form holds them: texts, and what they stand for.
 */
import type { Reply } from "../../state/client.ts"

export type SettingsFields = Reply<"admin-settings", "fields">
export type Field = SettingsFields["fields"][number]
type Json = Field["configured"]

/** Texts by the field's path; only of fields that were changed. */
export type Drafts = ReadonlyMap<string, string>

const isObject = (value: Json): value is { readonly [name: string]: Json } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** A value as the form shows it; empty where it is not set. */
export const textOf = (value: Json): string => {
  if (value === null) return ""
  if (isObject(value)) {
    return Object.entries(value)
      .map(([name, of]) => `${name} = ${typeof of === "string" ? of : JSON.stringify(of)}`)
      .join("\n")
  }
  return typeof value === "string" ? value : JSON.stringify(value)
}

/** The value that a text stands for; what is no value of the type goes as it is, for the gateway to refuse. */
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

/** The lines of a map that are no `name = value`, by their numbers from 1. */
export const faultyLines = (text: string): ReadonlyArray<number> =>
  text.split("\n").flatMap((line, index) => line.trim() === "" || /^[^=]*\S[^=]*=\s*\S/.test(line) ? [] : [index + 1])

/** Those of the drafts that say something else than what is configured. */
export const changesOf = (fields: ReadonlyArray<Field>, drafts: Drafts): ReadonlyArray<Field> =>
  fields.filter((field) => {
    const draft = drafts.get(field.path)
    return draft !== undefined &&
      JSON.stringify(valueOf(field, draft)) !== JSON.stringify(valueOf(field, textOf(field.configured)))
  })

/** The body of a change: groups with their fields. */
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

/** The field that a fault's place belongs to. */
export const fieldAt = (fields: ReadonlyArray<Field>, place: string): Field | undefined =>
  fields.find(({ path }) => place === path || place.startsWith(`${path}.`) || place.startsWith(`${path}[`))

/** Fields by their group, in the order they came. */
export const groupsOf = (fields: ReadonlyArray<Field>): ReadonlyArray<readonly [string, ReadonlyArray<Field>]> => {
  const groups = new Map<string, Array<Field>>()
  for (const field of fields) {
    const name = field.path.split(".")[0]!
    groups.set(name, [...(groups.get(name) ?? []), field])
  }
  return [...groups]
}
