/**
 * The facts of a failure that a Responses server reports within a reply: `response.failed`, an event `error`, or an object whose status is
 * `failed`. There is no HTTP status, so that its code decides.
 */
import { isRecord, type JsonRecord } from "../../domain/json.ts"
import type { UpstreamFailure } from "../../domain/UpstreamFailure.ts"
import { errorBody } from "../shared/errorBody.ts"
import { errorFacts, isError as isOtherError } from "../shared/errorFacts.ts"
import { asString } from "../shared/json.ts"

type Facts = Omit<ConstructorParameters<typeof UpstreamFailure>[0], "phase">

/** The server's own code of an error. */
const codeOf = (error: unknown): string | undefined => {
  const inner = isRecord(error) && isRecord(error["error"]) ? error["error"] : error
  const code = asString(isRecord(inner) ? inner["code"] : undefined)
  return code !== undefined && /^[\w.-]{1,100}$/.test(code) ? code : undefined
}

/** Reads the error of an HTTP response, as for chat completions, with the server's code. */
export const httpErrorFacts = (body: unknown): ReturnType<typeof errorFacts> & { readonly serverCode?: string } => {
  const serverCode = codeOf(body)
  return serverCode === undefined ? errorFacts(body) : { ...errorFacts(body), serverCode }
}

/** True if an object is an error instead of a response, which has an `error` that is `null`. */
export const isError = (value: JsonRecord): boolean => value["type"] === "error" || isOtherError(value)

/** Codes of the vendor's filters. */
const filters = /^(?:invalid_prompt|content_filter)$|_policy(?:_violation)?$/

/** Codes of what is wrong with the request. */
const mistakes = /^(?:invalid|image)_|^(?:failed_to_download_image|unsupported_image_media_type|empty_image_file)$/

/** The names of events, which are no types of errors. */
const eventFields: ReadonlySet<string> = new Set(["type", "sequence_number", "status", "headers", "stream_id"])

/** The JSON of an error within a reply, in the form of an HTTP response. */
const bodyOf = (error: unknown) => {
  if (!isRecord(error)) return {}
  if (isRecord(error["error"])) return errorBody({ error: error["error"] })
  const isEvent = error["type"] === "error"
  return errorBody({
    error: isEvent ? Object.fromEntries(Object.entries(error).filter(([name]) => !eventFields.has(name))) : error
  })
}

/** Reads an error within a reply; `error` has its `code` and `message`, or stands in a field `error`. */
export const replyErrorFacts = (error: unknown): Facts => {
  const { status, ...stated } = httpErrorFacts(error)
  const code = stated.serverCode ?? ""
  return {
    kind: filters.test(code) ? "withdrawn" : "refused",
    ...stated,
    ...bodyOf(error),
    ...(mistakes.test(code) ? { status: 400 } : status === undefined ? {} : { status })
  }
}
