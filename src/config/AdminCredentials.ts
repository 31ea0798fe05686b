/**
 * What operators sign in with, as of the start: the admin key, the secret that signs their logins, and the logins that ended.
 */
import * as Context from "effect/Context"
import * as Redacted from "effect/Redacted"
import { createHash, timingSafeEqual } from "node:crypto"
import type { EndedLogins } from "./EndedLogins.ts"
import { generateKey } from "./secrets.ts"

const digest = (text: string): Buffer => createHash("sha256").update(text).digest()

export class AdminCredentials extends Context.Service<AdminCredentials, {
  /** The environment's admin key, or a generated one. */
  readonly adminKey: Redacted.Redacted<string>
  readonly adminKeyGenerated: boolean
  /**
   * Compares with `adminKey` in constant time. The admin API decides whether the key may log in: a configured password
   * replaces it.
   */
  readonly isAdminKey: (candidate: string) => boolean
  /** The secret that signs admin JWTs. */
  readonly jwtSecret: Redacted.Redacted<Uint8Array>
  readonly endedLogins: EndedLogins
}>()("model-gateway/config/AdminCredentials") {}

/** What the credentials are made of. */
export interface GivenCredentials {
  /** Without one a key is generated. */
  readonly adminKey: Redacted.Redacted<string> | undefined
  readonly jwtSecret: Redacted.Redacted<Uint8Array>
  readonly endedLogins: EndedLogins
}

/** Makes the credentials. The nodes of a store announce no generated key (`isShared`), as each has another one. */
export const makeAdminCredentials = (
  { adminKey: given, endedLogins, jwtSecret }: GivenCredentials,
  isShared: boolean
): AdminCredentials["Service"] => {
  const adminKey = given ?? Redacted.make(generateKey("admin"))
  const adminDigest = digest(Redacted.value(adminKey))
  return {
    adminKey,
    adminKeyGenerated: given === undefined && !isShared,
    isAdminKey: (candidate) => timingSafeEqual(digest(candidate), adminDigest),
    jwtSecret,
    endedLogins
  }
}
