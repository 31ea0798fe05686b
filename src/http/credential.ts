/**
 * Where a caller's credential may stand (spec "Authentication"); the first source that is there counts.
 */
import type * as HttpServerRequest from "effect/http/HttpServerRequest"

const bearer = /^bearer\s+(.*)$/i

const queryCredential = (url: string): string | undefined => {
  const question = url.indexOf("?")
  if (question === -1) return undefined
  const query = new URLSearchParams(url.slice(question + 1))
  return query.get("key") ?? query.get("api_key") ?? undefined
}

/** The bearer token of the `Authorization` header. */
export const bearerToken = (headers: HttpServerRequest.HttpServerRequest["headers"]): string | undefined => {
  const token = bearer.exec(headers["authorization"] ?? "")?.[1]?.trim()
  return token === "" ? undefined : token
}

/** The credential of a business request; `undefined` when no source has one. */
export const credentialOf = (request: HttpServerRequest.HttpServerRequest): string | undefined => {
  const { headers } = request
  const found = bearerToken(headers) ??
    [headers["x-api-key"], headers["x-gen-api-key"], headers["x-goog-api-key"]].find((value) =>
      value !== undefined && value.trim() !== ""
    ) ?? queryCredential(request.url)
  const token = found?.trim()
  return token === "" ? undefined : token
}
