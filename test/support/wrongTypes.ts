/**
 * Invalid bodies, derived from one body that uses all fields.
 */
import * as fc from "fast-check"
import { isRecord } from "../../src/domain/json.ts"

type Json = null | boolean | number | string | ReadonlyArray<Json> | { readonly [key: string]: Json }
type Path = ReadonlyArray<string | number>

/** A body with one wrong field, and the name of the field. */
export interface Faulty {
  readonly field: string
  readonly body: Json
}

const children = (value: Json): ReadonlyArray<readonly [string | number, Json]> =>
  Array.isArray(value) ? value.map((item, i) => [i, item] as const) : isRecord(value) ? Object.entries(value) : []

const replaceAt = (value: Json, path: Path, replacement: Json): Json => {
  const [key, ...rest] = path
  if (key === undefined) return replacement
  if (Array.isArray(value)) return value.map((item, i) => i === key ? replaceAt(item, rest, replacement) : item)
  if (!isRecord(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [name, name === key ? replaceAt(item, rest, replacement) : item])
  )
}

const fieldName = (path: Path): string =>
  path.reduce<string>(
    (name, key) => typeof key === "number" ? `${name}[${key}]` : name === "" ? key : `${name}.${key}`,
    ""
  )

/** Replacements that the schema of a value rejects. An object comes first, because lenient fields accept it least. */
const wrong = (value: Json): ReadonlyArray<Json> => {
  if (typeof value === "string") return [5, { no: 1 }]
  if (typeof value === "number") return ["5x", true, { no: 1 }]
  if (typeof value === "boolean") return ["yes", 1]
  return [5, true]
}

/** All bodies with one value of a wrong type. Values under `free` fields are caller-defined and stay unchanged. */
export const wrongTypes = (body: Json, free: ReadonlyArray<string>): ReadonlyArray<Faulty> => {
  const faulty: Array<Faulty> = []
  const visit = (value: Json, path: Path) => {
    for (const replacement of path.length === 0 ? [] : wrong(value)) {
      faulty.push({ field: fieldName(path), body: replaceAt(body, path, replacement) })
    }
    if (free.includes(String(path.at(-1)))) return
    for (const [key, child] of children(value)) visit(child, [...path, key])
  }
  visit(body, [])
  return faulty
}

const pathsOf = (value: Json, path: Path = []): ReadonlyArray<Path> => [
  path,
  ...children(value).flatMap(([key, child]) => pathsOf(child, [...path, key]))
]

/** Bodies with arbitrary JSON at an arbitrary path. */
export const hostileBodies = (body: Json): fc.Arbitrary<Json> =>
  fc.tuple(fc.constantFrom(...pathsOf(body)), fc.jsonValue({ maxDepth: 3 })).map(([path, value]) =>
    replaceAt(body, path, JSON.parse(JSON.stringify(value)))
  )
