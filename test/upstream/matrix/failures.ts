/**
 * Failures that every server has in words of its own, and what callers are told of them in every style.
 */
import type { Told } from "./driver.ts"

export const told = (status: number, code: string, message: RegExp, asked: Told["asked"] = 1): Told => ({
  status,
  code,
  message,
  asked,
  // The limits of a server, and what states no time: a server that cannot be reached, and the want of an account.
  waits: status === 429 || code === "no_account_available" || message.source === "connection"
})

/** What servers say where a message has words of theirs. */
export const word = "word of the server"

const ofServer = /word of the server/

/** Replies that are no completion. */
export const failures = {
  "a bad request": told(400, "invalid_request", ofServer),
  "a long prompt": told(400, "context_length_exceeded", /too long/),
  "an unknown model": told(400, "model_not_found", /have the model/),
  "a refused key": told(503, "no_account_available", /refused/, 3),
  "a missing right": told(503, "upstream_error", /not permit/, 3),
  "a rate limit": told(429, "upstream_rate_limited", /limits the rate/, 3),
  "no quota": told(429, "upstream_rate_limited", /quota/, 3),
  "an overload": told(503, "upstream_error", ofServer, 3),
  "trouble": told(503, "upstream_error", ofServer, 3),
  "its own time-out": told(503, "upstream_timeout", /in time/, 3),
  "a page": told(
    503,
    "upstream_error",
    /^The upstream failed: what answered is not a model server \(HTTP \d+\)\.$/,
    3
  ),
  "no answer": told(503, "upstream_timeout", /in time/, 3),
  "a connection that breaks": told(503, "upstream_error", /connection/, 3),
  "an empty reply": told(503, "upstream_empty_output", /empty/, 3),
  "a broken whole reply": told(503, "upstream_error", /failed/, 3)
} as const satisfies Record<string, Told>

export type FailureName = keyof typeof failures

/** What may go wrong in a stream, before and after its first text. */
export const streamFaults = {
  "an error": [told(503, "upstream_error", ofServer, 3), told(503, "upstream_error", ofServer)],
  "a rate limit": [
    told(429, "upstream_rate_limited", /limits the rate/, 3),
    told(429, "upstream_rate_limited", /limits the rate/)
  ],
  "an early end": [told(503, "upstream_empty_output", /empty/, 3), told(503, "upstream_error", /cut off/)],
  "a broken connection": [told(503, "upstream_error", /connection/, 3), told(503, "upstream_error", /connection/)],
  "silence": [told(503, "upstream_timeout", /in time/, 3), told(503, "upstream_timeout", /in time/)],
  "broken JSON": [told(503, "upstream_error", /failed/, 3), told(503, "upstream_error", /failed/)]
} as const satisfies Record<string, readonly [before: Told, after: Told]>

export type StreamFaultName = keyof typeof streamFaults
