/**
 * Limits of a body's structure: what its text holds before it is parsed, and counts of its items before a Schema decodes it, so that an
 * oversized body costs no more than counting. Pure; malformed items are left for the Schema to report.
 */
import type * as Schema from "effect/Schema"
import { countedFields } from "../contracts/shared/requestSchema.ts"
import { type GatewayError, invalidRequest } from "../domain/GatewayError.ts"
import { isRecord, type JsonRecord } from "../domain/json.ts"
import type { Limits } from "../domain/limits.ts"
import { type Cooperative, Slice } from "../domain/stream/cooperative.ts"
import { type Measured, mostObjectKeys } from "../domain/stream/measureJson.ts"

type Counted = GatewayError | undefined

/** The fields of a request that count against the limits; each may be absent from a body. */
interface Outline {
  /** Fields with the turns of a conversation. */
  readonly turns: ReadonlyArray<string>
  /** Other fields with parts. */
  readonly parts: ReadonlyArray<string>
  /** The field of a `tools` entry that lists functions; if absent, the entry itself is a function. */
  readonly functions: string | undefined
  /** Paths of stop sequences, separated by dots. */
  readonly stops: ReadonlyArray<string>
  /** Paths of lists of tool names, separated by dots. */
  readonly toolNames: ReadonlyArray<string>
  /** Fields with maps of caller-defined keys. */
  readonly maps: ReadonlyArray<string>
}

/** The outline of a request, by the annotations of its Schema. */
const outlineOf = (schema: Schema.Constraint): Outline => {
  const fields = countedFields(schema)
  const paths = (counted: string) => [...new Set(fields.flatMap(([kind, path]) => kind === counted ? [path] : []))]
  return {
    turns: paths("turns"),
    parts: paths("parts"),
    functions: paths("functions")[0]?.split(".").at(-1),
    stops: paths("stops"),
    toolNames: paths("toolNames"),
    maps: paths("map")
  }
}

/** Most keys of a caller-defined map; vendors allow 16 to 1,024. */
const mostKeys = 1024

const fault = (field: string, message: string): GatewayError => invalidRequest(`${field}: ${message}`, field)

const listed = (count: number, limit: number, field: string): Counted =>
  count > limit ? fault(field, `has ${count} elements; at most ${limit} are allowed`) : undefined

/** The value at a path. */
const valueAt = (body: JsonRecord, path: ReadonlyArray<string>): unknown => {
  let value: unknown = body
  for (const key of path) value = isRecord(value) ? value[key] : undefined
  return value
}

/** Lists of parts within a turn or a part, in all styles. */
const partLists = ["content", "parts", "tool_calls", "output", "summary"]
/** Objects within a part that have parts themselves. */
const partHolders = ["source", "functionResponse", "content"]

const isObject = (value: unknown): boolean => typeof value === "object" && value !== null

/** True if an entry may contain parts in these fields; most entries are only a role and a text. */
const mayHoldParts = (
  { content, functionResponse, output, parts, source, summary, tool_calls }: JsonRecord
): boolean =>
  isObject(content) || isObject(parts) || isObject(tool_calls) || isObject(output) || isObject(summary) ||
  isObject(source) || isObject(functionResponse)

/** True for a call or a result that is an entry of its own. */
const isCallOrResult = (entry: JsonRecord): boolean =>
  typeof entry["type"] === "string" && /_(?:call|output)$/.test(entry["type"])

/** Counts the parts of turns, in slices. */
class PartCount {
  count = 0
  readonly #slice = new Slice()
  readonly #limit: number

  constructor(limit: number) {
    this.#limit = limit
  }

  get exceeded(): boolean {
    return this.count > this.#limit
  }

  /** Counts the calls and results among the entries of a list, and the parts within them. */
  *within(list: ReadonlyArray<unknown>): Cooperative<void> {
    for (let i = 0; i < list.length && !this.exceeded; i++) {
      if (this.#slice.add(1)) yield this.#slice.end()
      const entry = list[i]
      if (!isRecord(entry)) continue
      if (isCallOrResult(entry)) this.count++
      if (mayHoldParts(entry)) yield* this.#held(entry)
    }
  }

  *#held(entry: JsonRecord): Cooperative<void> {
    for (const name of partLists) {
      const list = entry[name]
      if (!Array.isArray(list)) continue
      this.count += list.length
      yield* this.within(list)
    }
    for (const name of partHolders) {
      if (isRecord(entry[name])) yield* this.within([entry[name]])
    }
  }
}

interface CountedField {
  readonly name: string
  /** The entries are turns; otherwise parts. */
  readonly isTurns: boolean
}

function* countTurns(body: JsonRecord, fields: ReadonlyArray<CountedField>, limits: Limits): Cooperative<Counted> {
  const parts = new PartCount(limits.parts)
  for (const { isTurns, name } of fields) {
    const entries = body[name]
    if (Array.isArray(entries)) {
      const tooMany = isTurns ? listed(entries.length, limits.messages, name) : undefined
      if (tooMany !== undefined) return tooMany
      if (!isTurns) parts.count += entries.length
      yield* parts.within(entries)
    } else if (isRecord(entries)) {
      yield* parts.within([entries])
    }
    if (parts.exceeded) {
      return fault(name, `has more content parts, calls and results than the ${limits.parts} that are allowed`)
    }
  }
  return undefined
}

/** The functions of a `tools` entry with their field names. */
const functionsOf = (
  tool: unknown,
  field: string,
  { functions: name }: Outline
): ReadonlyArray<readonly [string, unknown]> => {
  const functions = name !== undefined && isRecord(tool) ? tool[name] : undefined
  return name !== undefined && Array.isArray(functions)
    ? functions.map((each, i) => [`${field}.${name}[${i}]`, each])
    : [[field, tool]]
}

function* countTools(given: unknown, outline: Outline, limits: Limits): Cooperative<Counted> {
  const tools: ReadonlyArray<unknown> = Array.isArray(given) ? given : [given]
  const slice = new Slice()
  let count = 0
  let chars = 0
  if (tools.length > limits.tools) return listed(tools.length, limits.tools, "tools")
  for (const [i, tool] of tools.entries()) {
    const functions = functionsOf(tool, `tools[${i}]`, outline)
    count += Math.max(1, functions.length)
    if (count > limits.tools) return fault("tools", `declares more functions than the ${limits.tools} that are allowed`)
    for (const [field, declared] of functions) {
      const size = JSON.stringify(declared)?.length ?? 0
      if (size > limits.tool_bytes) {
        return fault(field, `is ${size} characters of JSON long; at most ${limits.tool_bytes} are allowed`)
      }
      chars += size
      if (chars > limits.tools_bytes) {
        return fault("tools", `are more than the ${limits.tools_bytes} characters of JSON that are allowed together`)
      }
      if (slice.add(1, size)) yield slice.end()
    }
  }
  return undefined
}

const countStops = (value: unknown, field: string, limits: Limits): Counted => {
  if (value === undefined) return undefined
  const stops: ReadonlyArray<unknown> = Array.isArray(value) ? value : [value]
  const tooMany = listed(stops.length, limits.stop_sequences, field)
  if (tooMany !== undefined) return tooMany
  const long = stops.findIndex((stop) => typeof stop === "string" && stop.length > limits.stop_chars)
  return long === -1
    ? undefined
    : fault(
      field,
      `has a sequence of ${String(stops[long]).length} characters; at most ${limits.stop_chars} are allowed`
    )
}

/** The error for a model name that is too long; `undefined` within the limit. */
export const modelFault = (name: unknown, limits: Limits): Counted =>
  typeof name === "string" && name.length > limits.model_chars
    ? fault("model", `is ${name.length} characters long; at most ${limits.model_chars} are allowed`)
    : undefined

/** The error for text that exceeds a bound; `undefined` within all. `what` names the text in the error. */
export const measureFault = ({ exceeded, field }: Measured, limits: Limits, what: string): Counted => {
  if (exceeded === undefined) return undefined
  const said = exceeded === "depth"
    ? `nests deeper than ${limits.depth} levels`
    : exceeded === "values"
    ? `has more than the ${limits.values} JSON values that are allowed`
    : `has an object with more than the ${mostObjectKeys} keys that are allowed`
  return field === undefined || exceeded === "depth" ? invalidRequest(`${what} ${said}`) : fault(field, said)
}

/** Makes a check that returns the error of the first exceeded limit of a request. Build it once, not per request. */
export const itemCounter = (schema: Schema.Constraint) => {
  const outline = outlineOf(schema)
  const { maps, parts, turns } = outline
  const fields = [
    ...turns.map((name): CountedField => ({ name, isTurns: true })),
    ...parts.map((name): CountedField => ({ name, isTurns: false }))
  ]
  const at = (path: string) => ({ path, keys: path.split(".") })
  const [stops, toolNames] = [outline.stops.map(at), outline.toolNames.map(at)]

  function* count(body: unknown, limits: Limits): Cooperative<Counted> {
    if (!isRecord(body)) return undefined
    const model = modelFault(body["model"], limits)
    if (model !== undefined) return model
    const counted = yield* countTurns(body, fields, limits)
    if (counted !== undefined) return counted
    const { tools: given } = body
    const tools = given === undefined || given === null ? undefined : yield* countTools(given, outline, limits)
    if (tools !== undefined) return tools
    for (const { keys, path } of stops) {
      const fault = countStops(valueAt(body, keys), path, limits)
      if (fault !== undefined) return fault
    }
    for (const { keys, path } of toolNames) {
      const names = valueAt(body, keys)
      const named = Array.isArray(names) ? listed(names.length, limits.tools, path) : undefined
      if (named !== undefined) return named
    }
    for (const field of maps) {
      const map = body[field]
      if (isRecord(map) && Object.keys(map).length > mostKeys) {
        return fault(field, `has more than the ${mostKeys} keys that are allowed`)
      }
    }
    return undefined
  }
  return { count, turns }
}
