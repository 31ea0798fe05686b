/**
 * Brings a content-generation body to the one form that the schemas describe: the vendor takes field names in camelCase and
 * in snake_case, and single values where lists stand. What is the caller's own data is never touched.
 */

type JsonRecord = { readonly [key: string]: unknown }

const isRecord = (value: unknown): value is JsonRecord =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Fields whose values are arguments, results or schemas: their keys are the caller's. */
const opaque = new Set([
  "args",
  "response",
  "parameters",
  "parametersJsonSchema",
  "responseSchema",
  "responseJsonSchema"
])

const camelCase = (key: string): string =>
  key.replace(/(?<=[a-z0-9])_([a-z])/g, (_, letter: string) => letter.toUpperCase())

/** Renames fields at every depth outside the opaque ones. Where both spellings stand, camelCase counts. */
const renamed = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(renamed)
  if (!isRecord(value)) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, field]) => {
      const name = camelCase(key)
      if (name !== key && Object.hasOwn(value, name)) return []
      return [[name, opaque.has(name) ? field : renamed(field)]]
    })
  )
}

const asList = (value: unknown): unknown =>
  value === undefined || value === null || Array.isArray(value) ? value : [value]

const withField = (record: JsonRecord, field: string, change: (value: unknown) => unknown): JsonRecord =>
  record[field] === undefined ? record : { ...record, [field]: change(record[field]) }

const part = (value: unknown): unknown => typeof value === "string" ? { text: value } : value

const parts = (value: unknown): unknown => {
  const list = asList(value)
  return Array.isArray(list) ? list.map(part) : list
}

/** A content may be written as its text or as its one part. */
const content = (value: unknown): unknown => {
  if (typeof value === "string") return { parts: [{ text: value }] }
  if (!isRecord(value)) return value
  return "parts" in value || "role" in value ? withField(value, "parts", parts) : { parts: [value] }
}

const contents = (value: unknown): unknown => {
  const list = asList(value)
  return Array.isArray(list) ? list.map(content) : list
}

/** System instructions may also be a list of parts. */
const systemInstruction = (value: unknown): unknown => Array.isArray(value) ? { parts: parts(value) } : content(value)

const functionCallingConfig = (value: unknown): unknown =>
  isRecord(value) ? withField(value, "mode", (mode) => typeof mode === "string" ? mode.toUpperCase() : mode) : value

const toolConfig = (value: unknown): unknown =>
  isRecord(value) ? withField(value, "functionCallingConfig", functionCallingConfig) : value

const tool = (value: unknown): unknown => isRecord(value) ? withField(value, "functionDeclarations", asList) : value

const tools = (value: unknown): unknown => {
  const list = asList(value)
  return Array.isArray(list) ? list.map(tool) : list
}

const generateRequest = (value: unknown): unknown => {
  if (!isRecord(value)) return value
  const changes: ReadonlyArray<readonly [string, (field: unknown) => unknown]> = [
    ["contents", contents],
    ["systemInstruction", systemInstruction],
    ["tools", tools],
    ["toolConfig", toolConfig]
  ]
  return changes.reduce((record, [field, change]) => withField(record, field, change), value)
}

/** The body in the form of `GenerateRequest`, as far as its types allow; faults are left for the schema to tell. */
export const normalizeRequest = (body: unknown): unknown => generateRequest(renamed(body))

/** The request whose tokens a body asks to count, which may stand within `generateContentRequest`. */
export const normalizeCountRequest = (body: unknown): unknown => {
  const request = renamed(body)
  return generateRequest(isRecord(request) ? request["generateContentRequest"] ?? request : request)
}
