/**
 * Values of JSON whose form is not known.
 */

/** The object itself; an empty one for any other value. */
export const record = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? value as Record<string, unknown> : {}

/** The array itself; an empty one for any other value. */
export const list = (value: unknown): ReadonlyArray<unknown> => Array.isArray(value) ? value : []

/** The string itself; an empty one for any other value. */
export const string = (value: unknown): string => typeof value === "string" ? value : ""

/** The value of a JSON text; `undefined` when the text is not JSON. */
export const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
