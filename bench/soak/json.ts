/**
 * Reads parts of unknown JSON values by path.
 */

/** Parses JSON; `undefined` for invalid text. */
export const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The value at a path, or `undefined`. */
export const at = (value: unknown, ...path: ReadonlyArray<string | number>): unknown => {
  let here: unknown = value
  for (const step of path) {
    if (typeof here !== "object" || here === null) return undefined
    here = Array.isArray(here) ? here[Number(step)] : (here as Readonly<Record<string, unknown>>)[step]
  }
  return here
}

/** The string at a path, or an empty string. */
export const textAt = (value: unknown, ...path: ReadonlyArray<string | number>): string => {
  const found = at(value, ...path)
  return typeof found === "string" ? found : ""
}

/** The number at a path. */
export const numberAt = (value: unknown, ...path: ReadonlyArray<string | number>): number | undefined => {
  const found = at(value, ...path)
  return typeof found === "number" ? found : undefined
}

/** The list at a path, or an empty list. */
export const listAt = (value: unknown, ...path: ReadonlyArray<string | number>): ReadonlyArray<unknown> => {
  const found = at(value, ...path)
  return Array.isArray(found) ? found : []
}
