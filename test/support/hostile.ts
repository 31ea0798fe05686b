/**
 * Hostile bodies: every field of a valid request with every wrong type, and bodies that are not JSON objects.
 */

/** A path in a document: `["messages", 0, "content"]`. */
export type FieldPath = ReadonlyArray<string | number>

type Json = null | boolean | number | string | Array<Json> | { [key: string]: Json }

const wrongValues: ReadonlyArray<Json> = [null, true, 7.5, -1, "text", [], {}, [null], [[]], { a: { b: [] } }, ""]

/** The value at each path of a document, without the document itself. */
export const pathsOf = (value: unknown, path: FieldPath = []): ReadonlyArray<FieldPath> => {
  const below = typeof value === "object" && value !== null
    ? Object.entries(value).flatMap(([key, child]) =>
      pathsOf(child, [...path, Array.isArray(value) ? Number(key) : key])
    )
    : []
  return path.length === 0 ? below : [path, ...below]
}

/** A copy with the value at a path replaced. */
export const withValue = (document: unknown, path: FieldPath, value: unknown): unknown => {
  const [key, ...rest] = path
  if (key === undefined) return value
  if (Array.isArray(document)) return document.map((child, i) => i === key ? withValue(child, rest, value) : child)
  const record = document as Record<string, unknown>
  return { ...record, [key]: withValue(record[key], rest, value) }
}

/** All documents with one field replaced by a wrong value. */
export const mutations = (
  document: unknown
): ReadonlyArray<{ readonly path: FieldPath; readonly body: unknown; readonly value: Json }> =>
  pathsOf(document).flatMap((path) =>
    wrongValues.map((value) => ({ path, value, body: withValue(document, path, value) }))
  )

/** Bodies that are invalid for every endpoint. */
export const brokenBodies: ReadonlyArray<{ readonly name: string; readonly body: string; readonly type?: string }> = [
  { name: "empty", body: "" },
  { name: "blank", body: "  \n" },
  { name: "cut off", body: "{\"model\": \"upstream-chat\", \"mess" },
  { name: "no JSON", body: "model=upstream-chat" },
  { name: "single quotes", body: "{'model': 'x'}" },
  { name: "a string", body: "\"text\"" },
  { name: "a number", body: "1" },
  { name: "null", body: "null" },
  { name: "an array", body: "[]" },
  { name: "an empty object", body: "{}" },
  { name: "deep arrays", body: "[".repeat(100_000) },
  { name: "deep objects", body: "{\"a\":".repeat(100_000) },
  { name: "deep and closed", body: `{"model":${"[".repeat(5000)}${"]".repeat(5000)}}` },
  { name: "prototype keys", body: "{\"__proto__\":{\"model\":\"upstream-chat\"},\"constructor\":{}}" },
  { name: "a NUL", body: "\u0000" },
  { name: "lone surrogates", body: "{\"model\":\"\\ud800\",\"messages\":\"\\udfff\"}" }
]
