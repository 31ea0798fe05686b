/**
 * What of a request and a reply may be recorded: no credentials, no cookies.
 */
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import type * as HttpServerResponse from "effect/http/HttpServerResponse"
import type { RequestHead } from "../recordings/requests/RequestRecord.ts"

const withheld: ReadonlySet<string> = new Set([
  "authorization",
  "proxy-authorization",
  "cookie",
  "set-cookie",
  "x-api-key",
  "x-gen-api-key",
  "x-goog-api-key",
  "x-host-protection-bypass"
])

/** Adds all that may be shown. */
const addShown = (
  kept: Record<string, string>,
  headers: Readonly<Record<string, string | undefined>>
): Record<string, string> => {
  for (const name of Object.keys(headers)) {
    const value = headers[name]
    if (value !== undefined && !withheld.has(name)) kept[name] = value
  }
  return kept
}

/** The path with its query, without the parameters that may hold a credential. */
const shownPath = (url: string): string => {
  const question = url.indexOf("?")
  if (question === -1) return url
  const query = new URLSearchParams(url.slice(question + 1))
  query.delete("key")
  query.delete("api_key")
  return query.size === 0 ? url.slice(0, question) : `${url.slice(0, question)}?${query}`
}

/** What is recorded of a request but for its body. */
export const headOf = ({ headers, method, originalUrl }: HttpServerRequest.HttpServerRequest): RequestHead => ({
  method,
  path: shownPath(originalUrl.replace(/^https?:\/\/[^/]*/, "")),
  headers: addShown({}, headers)
})

/** The headers of a reply. */
export const replyHeaders = (
  { body, headers }: HttpServerResponse.HttpServerResponse,
  requestId: string
): Record<string, string> => {
  const shown: Record<string, string> = {}
  if ("contentType" in body && body.contentType !== undefined) shown["content-type"] = body.contentType
  addShown(shown, headers)["x-request-id"] = requestId
  return shown
}
