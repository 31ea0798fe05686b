/**
 * The facts of an error as OpenAI-compatible servers send it, in a body or within a stream.
 *
 * There is no common form. OpenAI and most others wrap it in `error`; older vLLM sends the bare object, Ollama and LM Studio a
 * string, FastAPI a `detail` that may be a list, Google a list of bodies. `code` is a word, a number, or a quoted number.
 */
import { isHealthReason } from "../../domain/failureReasons.ts"
import { fieldName } from "../../domain/GatewayError.ts"
import { isRecord, type JsonRecord } from "../../domain/json.ts"
import type { RefusedPart } from "../../domain/refusedParts.ts"
import { asString, parseJson } from "./json.ts"
import { refusedParts } from "./refusals.ts"

/** The facts of an error. `status` is the one in the error itself. */
interface ErrorFacts {
  readonly reason?: string
  readonly message?: string
  /** The field of the request that the server names. */
  readonly param?: string
  readonly status?: number
  /** Parts of the request that the server refuses. */
  readonly refused?: ReadonlyArray<RefusedPart>
}

/** Details that are read. */
const mostDetails = 16

/** The nesting depth of messages. */
const deepest = 4

const messageOf = (value: unknown, depth: number): string | undefined => {
  if (typeof value === "string") return value.trim() === "" ? undefined : value
  if (depth === 0) return undefined
  if (Array.isArray(value)) return messageOf(value[0], depth - 1)
  if (!isRecord(value)) return undefined
  for (const key of ["message", "msg", "detail", "error"]) {
    const message = messageOf(value[key], depth - 1)
    if (message !== undefined) return message
  }
  return undefined
}

const isNumber = (word: string): boolean => /^\d+$/.test(word)

/** Google's details, one of which may contain the reason. */
const reasonsOf = (details: unknown): ReadonlyArray<unknown> =>
  Array.isArray(details)
    ? details.slice(0, mostDetails).map((detail: unknown) => isRecord(detail) ? detail["reason"] : undefined)
    : []

/** The longest name of a field. */
const longestParam = 200

/** The field that an error names: `param`, or the path of FastAPI's first detail. */
const paramOf = (error: JsonRecord): string | undefined => {
  const param = asString(error["param"])
  if (param !== undefined) return param.slice(0, longestParam)
  const details = error["detail"]
  const first: unknown = Array.isArray(details) ? details[0] : undefined
  const path: unknown = isRecord(first) ? first["loc"] : undefined
  if (!Array.isArray(path) || path.length > mostDetails) return undefined
  const keys = path.filter((key: unknown): key is string | number => typeof key === "string" || typeof key === "number")
  return asString(fieldName(keys[0] === "body" ? keys.slice(1) : keys).slice(0, longestParam))
}

/** What a server before another one repeats of that one's error: OpenRouter. */
const repeated = ({ metadata }: JsonRecord): ErrorFacts => {
  const raw = isRecord(metadata) ? asString(metadata["raw"]) : undefined
  return raw === undefined || raw.trimStart().startsWith("<") ? {} : errorFacts(parseJson(raw) ?? raw)
}

const describe = (error: JsonRecord): ErrorFacts => {
  const inner = repeated(error)
  const words = [error["code"], error["type"], error["status"], ...reasonsOf(error["details"])].map(asString)
  // A word about the account is preferred to a general one.
  const reason = words.find(isHealthReason) ?? words.slice(0, 2).find((word) => word !== undefined && !isNumber(word))
  const message = inner.message ?? messageOf(error, deepest)
  const param = paramOf(error) ?? inner.param
  const refused = inner.refused ?? refusedParts(error, message, param)
  const status = [error["code"], error["status"]].map(Number).find((code) => code >= 400 && code < 600)
  return {
    ...(reason === undefined ? {} : { reason }),
    ...(message === undefined ? {} : { message }),
    ...(param === undefined ? {} : { param }),
    ...(status === undefined ? {} : { status }),
    ...(refused.length === 0 ? {} : { refused })
  }
}

/** False for placeholders of an absent error. */
const says = (value: unknown): boolean =>
  typeof value === "string"
    ? value.trim() !== "" && value !== "0"
    : typeof value === "object" && value !== null
    ? Object.keys(value).length > 0
    : Boolean(value)

/** HTTP statuses of MiniMax's codes, from its documents. */
const statuses: ReadonlyMap<unknown, number> = new Map([[1002, 429], [1004, 401], [1008, 402], [2013, 400], [
  2049,
  401
]])

/** The error that MiniMax has in the place of a reply, under the status 200. */
const besideReply = ({ base_resp: said, choices }: JsonRecord): JsonRecord | undefined => {
  const code = isRecord(said) ? said["status_code"] : undefined
  if (!isRecord(said) || typeof code !== "number" || code === 0) return undefined
  if (Array.isArray(choices) && choices.length > 0) return undefined
  return { message: said["status_msg"], code: statuses.get(code) ?? String(code) }
}

/**
 * Whether an object is an error instead of a reply. Some servers send an empty error with each piece of a reply.
 */
export const isError = (value: JsonRecord): boolean => {
  const error = value["error"]
  if (isRecord(error)) return !Array.isArray(value["choices"]) || Object.values(error).some(says)
  return asString(error) !== undefined || value["object"] === "error" || besideReply(value) !== undefined
}

/** Reads the JSON of an error; unreadable parts yield no facts. */
export const errorFacts = (body: unknown): ErrorFacts => {
  const outer: unknown = Array.isArray(body) ? body[0] : body
  if (!isRecord(outer)) return typeof outer === "string" ? describe({ message: outer }) : {}
  return describe(isRecord(outer["error"]) ? outer["error"] : besideReply(outer) ?? outer)
}
