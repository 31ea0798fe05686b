/**
 * The session cookie of browsers, and the credential of an admin request.
 *
 * The cookie counts only on requests from the gateway's own pages (`Sec-Fetch-Site: same-origin`), so that no other page can
 * use it. It has no path: a browser then sends it below the folder that it came from, `…/admin`, with any prefix of a proxy.
 */
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import { bearerToken } from "../../http/RequestContext.ts"

const name = "gateway_session"

type Request = HttpServerRequest.HttpServerRequest

/** Whether the browser says that the request comes from a page of the gateway's own origin. */
export const isSameOrigin = ({ headers }: Request): boolean => headers["sec-fetch-site"] === "same-origin"

const cookieOf = (request: Request): string | undefined => {
  const token = isSameOrigin(request) ? request.cookies[name] : undefined
  return token === "" ? undefined : token
}

interface AdminCredential {
  readonly _tag: "Bearer" | "Cookie"
  readonly token: string
}

/** The credential of an admin request. With an `Authorization` header the cookie is ignored. */
export const adminCredential = (request: Request): AdminCredential | undefined => {
  const _tag = request.headers["authorization"] === undefined ? "Cookie" : "Bearer"
  const token = _tag === "Cookie" ? cookieOf(request) : bearerToken(request.headers)
  return token === undefined ? undefined : { _tag, token }
}

/** The value of `Set-Cookie` that signs a browser in for `seconds`, or out with an empty token. */
export const sessionCookie = (isSecure: boolean, token: string, seconds: number): string =>
  `${name}=${token}; HttpOnly; SameSite=Strict; Max-Age=${seconds}${isSecure ? "; Secure" : ""}`
