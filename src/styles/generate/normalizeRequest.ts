/**
 * Brings a content-generation body to the one form that the schemas describe: the vendor takes field names in camelCase and
 * in snake_case, and single values where lists stand. What is the caller's own data is never touched.
 */

import { isRecord, type JsonRecord } from "../../domain/json.ts"
import { Slice, type Sliced } from "../../domain/stream/slices.ts"
import { Part, partAttributes } from "./Api.ts"

/** Fields whose values are arguments, results or schemas: their keys are the caller's. */
const opaque = new Set([
  "args",
  "response",
  "parameters",
  "parametersJsonSchema",
  "responseSchema",
  "responseJsonSchema"
])

/** Characters up to which a name may be a field's. A longer one is nobody's, and would take long to be renamed. */
const longestField = 64

const camelCase = (key: string): string =>
  key.length <= longestField && key.includes("_")
    ? key.replace(/(?<=[a-z0-9])_([a-z])/g, (_, letter: string) => letter.toUpperCase())
    : key

/** Renames fields at every depth outside the opaque ones. Where both spellings stand, camelCase counts. */
function* renamed(value: unknown, slice: Slice): Sliced<unknown> {
  if (slice.add(1)) yield slice.end()
  if (Array.isArray(value)) {
    const list: Array<unknown> = []
    for (const element of value) {
      if (slice.add(1)) yield slice.end()
      list.push(isLeaf(element) ? element : yield* renamed(element, slice))
    }
    return list
  }
  if (!isRecord(value)) return value
  const fields: JsonRecord = {}
  for (const key of Object.keys(value)) {
    if (slice.add(1, key.length)) yield slice.end()
    const name = camelCase(key)
    // By assignment this one would make a prototype; it is nobody's field.
    if (name === "__proto__" || (name !== key && Object.hasOwn(value, name))) continue
    const field = value[key]
    fields[name] = opaque.has(name) || isLeaf(field) ? field : yield* renamed(field, slice)
  }
  return fields
}

const isLeaf = (value: unknown): boolean => typeof value !== "object" || value === null

const asList = (value: unknown): unknown =>
  value === undefined || value === null || Array.isArray(value) ? value : [value]

/** In place, as all below: `renamed` has just made the records, and they may have very many fields. */
const withField = (record: JsonRecord, field: string, change: (value: unknown) => unknown): JsonRecord => {
  if (record[field] !== undefined) record[field] = change(record[field])
  return record
}

/** Fields up to which a part is kept as it is. */
const mostFields = 64

const knownFields: ReadonlySet<string> = new Set([...Object.keys(Part.schema.fields), ...partAttributes])

/** A part's known fields, and of the others what it takes to name its kind: the first, and the first that is not null. */
function* fewFields(part: JsonRecord, keys: ReadonlyArray<string>, slice: Slice): Sliced<JsonRecord> {
  const few: JsonRecord = {}
  let others = 0
  for (const key of keys) {
    if (slice.add(1)) yield slice.end()
    const isKnown = knownFields.has(key)
    if (!isKnown && !(others === 0 || (others === 1 && part[key] !== null))) continue
    few[key] = part[key]
    if (!isKnown) others = part[key] === null ? 1 : 2
  }
  return few
}

function* part(value: unknown, slice: Slice): Sliced<unknown> {
  if (typeof value === "string") return { text: value }
  if (!isRecord(value)) return value
  const keys = Object.keys(value)
  return keys.length <= mostFields ? value : yield* fewFields(value, keys, slice)
}

function* parts(value: unknown, slice: Slice): Sliced<unknown> {
  const list = asList(value)
  if (!Array.isArray(list)) return list
  const changed: Array<unknown> = []
  for (const element of list) {
    if (slice.add(1)) yield slice.end()
    changed.push(yield* part(element, slice))
  }
  return changed
}

/** A content may be written as its text or as its one part. */
function* content(value: unknown, slice: Slice): Sliced<unknown> {
  if (typeof value === "string") return { parts: [{ text: value }] }
  if (!isRecord(value)) return value
  if (!("parts" in value || "role" in value)) return { parts: [yield* part(value, slice)] }
  if (value["parts"] !== undefined) value["parts"] = yield* parts(value["parts"], slice)
  return value
}

function* contents(value: unknown, slice: Slice): Sliced<unknown> {
  const list = asList(value)
  if (!Array.isArray(list)) return list
  const changed: Array<unknown> = []
  for (const element of list) {
    if (slice.add(1)) yield slice.end()
    changed.push(yield* content(element, slice))
  }
  return changed
}

/** System instructions may also be a list of parts. */
function* systemInstruction(value: unknown, slice: Slice): Sliced<unknown> {
  return Array.isArray(value) ? { parts: yield* parts(value, slice) } : yield* content(value, slice)
}

const functionCallingConfig = (value: unknown): unknown =>
  isRecord(value) ? withField(value, "mode", (mode) => typeof mode === "string" ? mode.toUpperCase() : mode) : value

const toolConfig = (value: unknown): unknown =>
  isRecord(value) ? withField(value, "functionCallingConfig", functionCallingConfig) : value

const tool = (value: unknown): unknown => isRecord(value) ? withField(value, "functionDeclarations", asList) : value

function* tools(value: unknown, slice: Slice): Sliced<unknown> {
  const list = asList(value)
  if (!Array.isArray(list)) return list
  const changed: Array<unknown> = []
  for (const element of list) {
    if (slice.add(1)) yield slice.end()
    changed.push(tool(element))
  }
  return changed
}

function* generateRequest(value: unknown, slice: Slice): Sliced<unknown> {
  if (!isRecord(value)) return value
  const request = withField(value, "toolConfig", toolConfig)
  const changes = { contents, systemInstruction, tools }
  for (const [field, change] of Object.entries(changes)) {
    if (request[field] !== undefined) request[field] = yield* change(request[field], slice)
  }
  return request
}

/** The body in the form of `GenerateRequest`, as far as its types allow; faults are left for the schema to tell. */
export function* normalizeRequest(body: unknown): Sliced<unknown> {
  const slice = new Slice()
  return yield* generateRequest(yield* renamed(body, slice), slice)
}

/** The request whose tokens a body asks to count, which may stand within `generateContentRequest`. */
export function* normalizeCountRequest(body: unknown): Sliced<unknown> {
  const slice = new Slice()
  const request = yield* renamed(body, slice)
  return yield* generateRequest(isRecord(request) ? request["generateContentRequest"] ?? request : request, slice)
}

function* embedRequest(value: unknown, slice: Slice): Sliced<unknown> {
  if (!isRecord(value) || value["content"] === undefined) return value
  value["content"] = yield* content(value["content"], slice)
  return value
}

/** The body of an embedding, or of several, in the form of `EmbedContentRequest` and `BatchEmbedContentsRequest`. */
export function* normalizeEmbedRequest(body: unknown): Sliced<unknown> {
  const slice = new Slice()
  const request = yield* embedRequest(yield* renamed(body, slice), slice)
  if (!isRecord(request) || !Array.isArray(request["requests"])) return request
  const requests: Array<unknown> = []
  for (const each of request["requests"]) {
    if (slice.add(1)) yield slice.end()
    requests.push(yield* embedRequest(each, slice))
  }
  request["requests"] = requests
  return request
}
