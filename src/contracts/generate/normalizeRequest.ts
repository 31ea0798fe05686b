/**
 * Brings a content-generation body to the one form that the schemas describe. The vendor accepts field names in camelCase
 * and in snake_case, and a single value in the place of a list. Data of the caller's own stays untouched.
 */
import { isRecord, type JsonRecord } from "../../domain/json.ts"
import { type Cooperative, Slice } from "../../domain/stream/cooperative.ts"
import { jsonFields } from "../shared/requestSchema.ts"
import { camelCase, partAttributes } from "./family.ts"
import { GenerateRequest, Part } from "./schema.ts"

/** Fields with arguments, results or schemas: their keys are the caller's own. */
const opaque = jsonFields(GenerateRequest)

/** Renames fields at every depth outside the opaque ones. Of two spellings of one field, camelCase wins. */
function* renamed(value: unknown, slice: Slice): Cooperative<unknown> {
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
    // An assignment to this key would set the prototype.
    if (name === "__proto__" || (name !== key && Object.hasOwn(value, name))) continue
    const field = value[key]
    fields[name] = opaque.has(name) || isLeaf(field) ? field : yield* renamed(field, slice)
  }
  return fields
}

const isLeaf = (value: unknown): boolean => typeof value !== "object" || value === null

type Change = (value: unknown, slice: Slice) => Cooperative<unknown>

/** Changes the elements of a list; a single value becomes a list of one. */
const listOf = (change: Change): Change =>
  function*(value, slice) {
    if (value === undefined || value === null) return value
    const changed: Array<unknown> = []
    for (const element of Array.isArray(value) ? value : [value]) {
      if (slice.add(1)) yield slice.end()
      changed.push(yield* change(element, slice))
    }
    return changed
  }

/** Changes fields of a record in place: `renamed` has just made it, and it may have very many fields. */
const fieldsOf = (changes: { readonly [field: string]: Change }): Change =>
  function*(value, slice) {
    if (!isRecord(value)) return value
    for (const field of Object.keys(changes)) {
      if (value[field] !== undefined) value[field] = yield* changes[field]!(value[field], slice)
    }
    return value
  }

/** The largest number of fields with which a part is kept as it is. */
const mostFields = 64

const knownFields: ReadonlySet<string> = new Set([...Object.keys(Part.schema.fields), ...partAttributes])

/** The known fields of a part and those that name its kind: the first unknown field, and the first that is not null. */
function* fewFields(part: JsonRecord, keys: ReadonlyArray<string>, slice: Slice): Cooperative<JsonRecord> {
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

/** A part may be sent as its text. */
const part: Change = function*(value, slice) {
  if (typeof value === "string") return { text: value }
  if (!isRecord(value)) return value
  const keys = Object.keys(value)
  return keys.length <= mostFields ? value : yield* fewFields(value, keys, slice)
}

const parts = listOf(part)

const contentFields = fieldsOf({ parts })

/** A content may be sent as its text or as its only part. */
const content: Change = function*(value, slice) {
  if (typeof value === "string") return { parts: [{ text: value }] }
  return isRecord(value) && !("parts" in value || "role" in value)
    ? { parts: [yield* part(value, slice)] }
    : yield* contentFields(value, slice)
}

/** System instructions may also be sent as a list of parts. */
const systemInstruction: Change = function*(value, slice) {
  return Array.isArray(value) ? { parts: yield* parts(value, slice) } : yield* content(value, slice)
}

const upperCase: Change = function*(value) {
  return typeof value === "string" ? value.toUpperCase() : value
}

const asList = listOf(function*(value) {
  return value
})

const generateRequest = fieldsOf({
  toolConfig: fieldsOf({ functionCallingConfig: fieldsOf({ mode: upperCase }) }),
  contents: listOf(content),
  systemInstruction,
  tools: listOf(fieldsOf({ functionDeclarations: asList }))
})

const embedRequest = fieldsOf({ content })

const embedRequests = listOf(embedRequest)

/** The body in the form of `GenerateRequest`. Values of a wrong type stay as they are, for the schema to refuse. */
export function* normalizeRequest(body: unknown): Cooperative<unknown> {
  const slice = new Slice()
  return yield* generateRequest(yield* renamed(body, slice), slice)
}

/** The request of a token count, which the body may wrap. */
export const wrappedRequest = (body: unknown): unknown =>
  isRecord(body) ? body["generateContentRequest"] ?? body["generate_content_request"] ?? body : body

/** `normalizeRequest` of a token count. */
export function* normalizeCountRequest(body: unknown): Cooperative<unknown> {
  const slice = new Slice()
  const request = yield* renamed(body, slice)
  return yield* generateRequest(wrappedRequest(request), slice)
}

/** The body of one embedding or of a batch, in the form of `EmbedContentRequest` or `BatchEmbedContentsRequest`. */
export function* normalizeEmbedRequest(body: unknown): Cooperative<unknown> {
  const slice = new Slice()
  const request = yield* embedRequest(yield* renamed(body, slice), slice)
  if (isRecord(request) && Array.isArray(request["requests"])) {
    request["requests"] = yield* embedRequests(request["requests"], slice)
  }
  return request
}
