/**
 * Named tokens for the admin API, of which the configuration has the hashes.
 */
import * as Redacted from "effect/Redacted"
import { hash, timingSafeEqual } from "node:crypto"
import type { AdminConfig, AdminToken } from "../../config/GatewayConfig.ts"
import { adminTokenPrefix } from "../../config/secrets.ts"

/** The token that a credential is: one hash, and a comparison in constant time with each of at most 100 tokens. */
export const findToken = ({ tokens }: AdminConfig, credential: string): AdminToken | undefined => {
  if (tokens.length === 0 || !credential.startsWith(adminTokenPrefix)) return undefined
  const digest = hash("sha256", credential, "buffer")
  let found: AdminToken | undefined
  for (const token of tokens) {
    if (timingSafeEqual(digest, Buffer.from(Redacted.value(token.hash), "hex"))) found = token
  }
  return found
}

/** What the sessions of a token have of its hash: a token with another secret has other sessions. */
export const fingerprintOf = ({ hash }: AdminToken): string => Redacted.value(hash).slice(0, 16)

/** The token of a session by its fingerprint. */
export const tokenOfSession = ({ tokens }: AdminConfig, fingerprint: string): AdminToken | undefined =>
  tokens.find((token) => fingerprintOf(token) === fingerprint)

/** Whether a token has expired at `now`, in Unix milliseconds. */
export const hasExpired = ({ expires_at }: AdminToken, now: number): boolean =>
  expires_at !== undefined && expires_at <= now
