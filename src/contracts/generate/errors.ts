/**
 * The facts of an error as content-generation servers send it: `{error: {code, message, status, details}}`, alone or in a list.
 * `details` have the reason, the limits that were reached, the faulty fields, and the time to wait.
 */
import { isRecord, type JsonRecord } from "../../domain/json.ts"
import { isDailyQuota, retryInfoOf } from "../../domain/quota.ts"
import { errorFacts as statedFacts } from "../shared/errorFacts.ts"
import { asString } from "../shared/json.ts"

/** Details that are read, and violations of each. */
const mostDetails = 16

/** The longest name of a field. */
const longestParam = 200

const errorOf = (body: unknown): JsonRecord => {
  const outer: unknown = Array.isArray(body) ? body[0] : body
  return isRecord(outer) && isRecord(outer["error"]) ? outer["error"] : {}
}

const recordsOf = (value: unknown): ReadonlyArray<JsonRecord> =>
  Array.isArray(value) ? value.slice(0, mostDetails).filter(isRecord) : []

/** Reads the JSON of an error; unreadable parts yield no facts. */
export const errorFacts = (body: unknown) => {
  const error = errorOf(body)
  const stated = statedFacts(body)
  const details = recordsOf(error["details"])
  const daily = isDailyQuota(error)
  const retryAfter = retryInfoOf(error)
  const field = asString(
    details.flatMap(({ fieldViolations }) => recordsOf(fieldViolations)).map(({ field }) => field).find(asString)
  )
  // What is missing may also be a file or a cached content.
  const isModel = error["status"] === "NOT_FOUND" && !/cached|file/i.test(stated.message ?? "")
  const reason = daily ? "QUOTA_EXCEEDED" : stated.reason ?? (isModel ? "model_not_found" : undefined)
  return {
    ...stated,
    ...(reason === undefined ? {} : { reason }),
    ...(field === undefined ? {} : { param: field.slice(0, longestParam) }),
    // A quota of a day is not back after the seconds that the server names.
    ...(retryAfter === undefined || daily ? {} : { retryAfter })
  }
}

/** True for an error instead of a reply. */
export const isError = (value: JsonRecord): boolean => isRecord(value["error"])
