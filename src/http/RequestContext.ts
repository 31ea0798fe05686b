/**
 * The context of a request that its endpoint's middleware provides to the handler, and the credential it is read from.
 */
import * as Context from "effect/Context"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import type { Caller } from "../accounts/Accounts.ts"
import type { GatewayKey } from "../accounts/Callers.ts"
import type { Request } from "../completion/Request.ts"
import { gatewayError } from "../domain/GatewayError.ts"
import { gatewayKeyHeader, loginHeaders, tokenOfLogin } from "../domain/ownLogin.ts"

/** The authenticated caller; provided by the middleware of business endpoints. */
export class CurrentCaller extends Context.Service<CurrentCaller, Caller>()("model-gateway/http/CurrentCaller") {}

/** The running request; provided by the middleware of every endpoint. */
export class CurrentRequest extends Context.Service<CurrentRequest, Request>()("model-gateway/http/CurrentRequest") {}

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

/**
 * The credential of a business request: the header for the gateway's key, else the first of its possible sources (spec "Authentication"), or
 * `undefined`. An upgrade has it in a header, because the address of a long connection is logged by many proxies.
 */
export const credentialOf = (request: HttpServerRequest.HttpServerRequest): string | undefined => {
  const { headers } = request
  const own = headers[gatewayKeyHeader]
  if (own !== undefined) return own.trim()
  const found = bearerToken(headers) ??
    [headers["x-api-key"], headers["x-gen-api-key"], headers["x-goog-api-key"]].find((value) =>
      value !== undefined && value.trim() !== ""
    ) ?? (headers["upgrade"] === undefined ? queryCredential(request.url) : undefined)
  const token = found?.trim()
  return token === "" ? undefined : token
}

/** Whether the credential came in the header for the gateway's key, and the caller's own login beside it. */
export const gatewayKeyOf = (
  { headers }: Pick<HttpServerRequest.HttpServerRequest, "headers">
): GatewayKey | undefined => {
  if (headers[gatewayKeyHeader] === undefined) return undefined
  const header = loginHeaders.find((name) => (headers[name] ?? "").trim() !== "")
  return { login: header === undefined ? undefined : tokenOfLogin({ header, value: headers[header]! }) }
}

/** The refusal of a request without a credential. */
export const missingCredential = gatewayError(
  "authentication_failed",
  "No API key was sent; send Authorization: Bearer <key> or x-api-key: <key>"
)
