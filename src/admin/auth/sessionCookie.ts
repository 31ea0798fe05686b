/**
 * The cookie that a browser is signed in by, and where an operator's credential may stand.
 *
 * The cookie counts only on requests that the gateway's own pages make (`Sec-Fetch-Site: same-origin`), so that no other page
 * can use it. It has no path: a browser then sends it to the folder that it came from, `…/admin`, whatever prefix a proxy
 * puts before it.
 */
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import { bearerToken } from "../../http/credential.ts"

const name = "gateway_session"

type Request = HttpServerRequest.HttpServerRequest

/** Whether the request comes from a page of the gateway's own origin, as the browser says. */
export const isSameOrigin = ({ headers }: Request): boolean => headers["sec-fetch-site"] === "same-origin"

const cookieOf = (request: Request): string | undefined => {
  const token = isSameOrigin(request) ? request.cookies[name] : undefined
  return token === "" ? undefined : token
}

/** A credential of the admin API. A header decides alone, whatever it says. */
export type AdminCredential =
  | { readonly _tag: "Bearer"; readonly token: string }
  | { readonly _tag: "Cookie"; readonly token: string }

export const adminCredential = (request: Request): AdminCredential | undefined => {
  if (request.headers["authorization"] !== undefined) {
    const token = bearerToken(request.headers)
    return token === undefined ? undefined : { _tag: "Bearer", token }
  }
  const token = cookieOf(request)
  return token === undefined ? undefined : { _tag: "Cookie", token }
}

/** The value of `Set-Cookie` that signs a browser in for `seconds`, or out where there is no token. */
export const sessionCookie = ({ headers }: Request, token: string, seconds: number): string =>
  `${name}=${token}; HttpOnly; SameSite=Strict; Max-Age=${seconds}${
    headers["origin"]?.startsWith("https:") === true ? "; Secure" : ""
  }`
