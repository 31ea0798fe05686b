/**
 * What browsers are told of who may call (spec "Common facts"): everybody.
 *
 * That is the same for every reply, so it is written with the reply's id; only a preflight is answered by the library, whose
 * middleware makes two maps of headers anew for each reply.
 */
import * as HttpMiddleware from "effect/http/HttpMiddleware"
import { rateLimitHeaderNames } from "../usage/rateLimits.ts"

/** Headers that browsers may send. */
const allowedHeaders = [
  "Content-Type",
  "Authorization",
  "X-API-Key",
  "X-Gateway-Target-Account",
  "X-Host-Protection-Bypass"
]

const exposedHeaders = ["X-Request-Id", "Request-Id", "Retry-After", "X-Should-Retry", ...rateLimitHeaderNames]

/** What every reply says. */
export const originHeaders = {
  "access-control-allow-origin": "*",
  "access-control-expose-headers": exposedHeaders.join(",")
} as const

/** Answers preflights, and adds its headers to all else: it is for requests with the method `OPTIONS`. */
export const preflights = HttpMiddleware.cors({ allowedHeaders, exposedHeaders })
