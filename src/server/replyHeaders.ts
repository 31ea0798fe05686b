/**
 * Headers of every reply: cross-origin access (spec "Common facts": every origin may call) and protection against framing.
 *
 * The cross-origin headers are constant, so they are set together with the request id. Only preflights go through the library's
 * middleware, which builds two header maps for each reply.
 */
import * as HttpMiddleware from "effect/http/HttpMiddleware"
import { rateLimitHeaderNames } from "../http/rateLimitHeaders.ts"

/** Request headers that browsers may send. */
const allowedHeaders = [
  "Content-Type",
  "Authorization",
  "X-API-Key",
  "X-Gateway-Target-Account",
  "X-Host-Protection-Bypass"
]

const exposedHeaders = [
  "X-Request-Id",
  "Request-Id",
  "X-Upstream-Request-Id",
  "Retry-After",
  "Retry-After-Ms",
  "X-Should-Retry",
  "X-Gateway-Upstream",
  "X-Gateway-Model",
  "X-Gateway-Ignored",
  "X-Gateway-Fault",
  "X-Gateway-Fallback",
  "Server-Timing",
  ...rateLimitHeaderNames
]

export const originHeaders = {
  "access-control-allow-origin": "*",
  "access-control-expose-headers": exposedHeaders.join(",")
} as const

/** Answers preflights. Use it for `OPTIONS` requests only, because it adds its headers to others too. */
export const preflights = HttpMiddleware.cors({ allowedHeaders, exposedHeaders })

export const framingHeaders = {
  "content-security-policy": "frame-ancestors 'none'",
  "x-frame-options": "DENY",
  "x-content-type-options": "nosniff"
} as const
