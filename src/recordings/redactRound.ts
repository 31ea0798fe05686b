/**
 * Redaction of recordings: credentials in headers and URLs are dropped, secrets in bodies are overwritten in place, so that all
 * other bytes keep their positions.
 */
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import type * as HttpServerResponse from "effect/http/HttpServerResponse"
import { type AddressPrivacy, shownAddress } from "../domain/addresses.ts"
import { identityHeaders, type SessionPrivacy } from "../domain/clientIdentity.ts"
import { credentialHeaders } from "../domain/forwardedHeaders.ts"

/** Shorter secrets are not credentials but words, such as the `none` of a server that needs no key. */
export const shortestSecret = 8

/** The forms in which a secret may occur in a body: verbatim, and escaped in JSON. */
const formsOf = (secrets: Iterable<string>): ReadonlySet<string> => {
  const forms = new Set<string>()
  for (const secret of secrets) {
    if (secret.length < shortestSecret) continue
    forms.add(secret)
    forms.add(JSON.stringify(secret).slice(1, -1))
  }
  return forms
}

/** Overwrites every occurrence of the secrets in `bytes`, and returns the same array. */
export const redactBytes = (bytes: Uint8Array, secrets: Iterable<string>): Uint8Array => {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  for (const secret of formsOf(secrets)) {
    const wanted = Buffer.from(secret)
    for (let at = view.indexOf(wanted); at !== -1; at = view.indexOf(wanted, at + wanted.length)) {
      view.fill("*", at, at + wanted.length)
    }
  }
  return bytes
}

/** Returns the text with every occurrence of the secrets overwritten. */
export const redactText = (text: string, secrets: Iterable<string>): string => {
  let redacted = text
  for (const secret of formsOf(secrets)) redacted = redacted.replaceAll(secret, "*".repeat(secret.length))
  return redacted
}

/** The URL without credentials and query. */
export const plainUrl = (url: string): string => {
  if (!URL.canParse(url)) return url
  const { origin, pathname } = new URL(url)
  return `${origin}${pathname}`
}

/** Copies all headers to `to` that hold no credential. */
const addHeaders = (
  to: Record<string, string>,
  headers: Readonly<Record<string, string | undefined>>,
  further: ReadonlyArray<string> = []
): Record<string, string> => {
  for (const name of Object.keys(headers)) {
    const value = headers[name]
    if (value !== undefined && !credentialHeaders.has(name) && !further.includes(name)) to[name] = value
  }
  return to
}

/** Headers of proxies with the client's address, beside `forwarded`. */
const addressHeaders: ReadonlySet<string> = new Set([
  "cf-connecting-ip",
  "cf-connecting-ipv6",
  "do-connecting-ip",
  "fastly-client-ip",
  "fly-client-ip",
  "true-client-ip",
  "x-appengine-user-ip",
  "x-azure-clientip",
  "x-azure-socketip",
  "x-client-ip",
  "x-cluster-client-ip",
  "x-envoy-external-address",
  "x-forwarded-for",
  "x-original-forwarded-for",
  "x-real-ip"
])

/** A list of addresses as far as they are kept. Another entry is overwritten, because it may contain an address. */
const shownAddresses = (list: string, privacy: AddressPrivacy): string =>
  list.split(",").map((entry) => shownAddress(entry, privacy) ?? "***").join(", ")

/** A `Forwarded` header with its addresses as far as they are kept. */
const shownForwarded = (value: string, privacy: AddressPrivacy): string =>
  value.replace(
    /\b(for|by)\s*=\s*("[^"]*"?|[^;,]*)/gi,
    (_, name: string, node: string) => `${name}="${shownAddress(node.replaceAll("\"", ""), privacy) ?? "***"}"`
  )

/** Applies `privacy.client_address` to the headers of a request, in place. */
const hideAddresses = (headers: Record<string, string>, privacy: AddressPrivacy): Record<string, string> => {
  if (privacy === "full") return headers
  for (const name of Object.keys(headers)) {
    if (name === "forwarded") headers[name] = shownForwarded(headers[name]!, privacy)
    else if (addressHeaders.has(name)) headers[name] = shownAddresses(headers[name]!, privacy)
  }
  return headers
}

/** What of a client is kept. */
interface HeadPrivacy {
  readonly client_address: AddressPrivacy
  readonly sessions: SessionPrivacy
}

/** Applies `privacy.sessions` to the headers of a request, in place. The record's facts have what it keeps. */
const hideSessions = (headers: Record<string, string>, privacy: SessionPrivacy): Record<string, string> => {
  if (privacy === "full") return headers
  for (const name of identityHeaders) if (headers[name] !== undefined) headers[name] = "***"
  return headers
}

/** The path with its query, without the parameters that may hold a credential. */
const plainPath = (url: string): string => {
  const question = url.indexOf("?")
  if (question === -1) return url
  const query = new URLSearchParams(url.slice(question + 1))
  query.delete("key")
  query.delete("api_key")
  return query.size === 0 ? url.slice(0, question) : `${url.slice(0, question)}?${query}`
}

/** A recorded request without its body. */
export interface RequestHead {
  readonly method: string
  readonly path: string
  /** Without credentials and cookies. */
  readonly headers: Readonly<Record<string, string>>
}

/**
 * The part of a request that is recorded beside its body, with clients' addresses as far as they are kept. `secretHeaders` are more
 * headers with credentials, in lower case.
 */
export const recordedHead = (
  { headers, method, originalUrl }: HttpServerRequest.HttpServerRequest,
  privacy: HeadPrivacy,
  secretHeaders: ReadonlyArray<string> = []
): RequestHead => ({
  method,
  path: plainPath(originalUrl.replace(/^https?:\/\/[^/]*/, "")),
  headers: hideSessions(hideAddresses(addHeaders({}, headers, secretHeaders), privacy.client_address), privacy.sessions)
})

/** The headers of a response that are recorded. */
export const recordedHeaders = (
  { body, headers }: HttpServerResponse.HttpServerResponse,
  requestId: string
): Record<string, string> => {
  const recorded: Record<string, string> = {}
  if ("contentType" in body && body.contentType !== undefined) recorded["content-type"] = body.contentType
  addHeaders(recorded, headers)["x-request-id"] = requestId
  return recorded
}
