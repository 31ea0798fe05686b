/** Credentials that no login stands behind. */
import * as Effect from "effect/Effect"
import { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import type { Credential, Driver } from "../upstream/Upstream.ts"
import type { AccountAccess } from "./Lease.ts"

/** A token that is what it is: once the upstream refuses it, there is no other. */
export const fixedCredential = (token: string | undefined): Credential => ({
  token: Effect.succeed(token),
  renew: () =>
    Effect.fail(
      // No login was tried: the refusal of the token stands.
      new UpstreamFailure({ phase: "resume", kind: "refused", code: 40003, message: "it cannot be renewed" })
    )
})

/** A caller's own token has no account, no refresh, no health. */
export const directAccess = (driver: Driver, token: string | undefined): AccountAccess => ({
  driver,
  credential: fixedCredential(token),
  account: undefined,
  identifier: undefined,
  accountHash: undefined,
  secrets: () => token === undefined ? [] : [token],
  refreshToken: Effect.void,
  report: () => Effect.void
})
