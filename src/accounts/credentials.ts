/** Credentials that no login stands behind. */
import * as Effect from "effect/Effect"
import { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import type { Credential } from "../upstream/Upstream.ts"

/** A token that is what it is: once the upstream refuses it, there is no other. */
export const fixedCredential = (token: string | undefined): Credential => ({
  token: Effect.succeed(token),
  renew: () =>
    Effect.fail(
      // No login was tried: the refusal of the token stands.
      new UpstreamFailure({ phase: "resume", kind: "refused", code: 40003, message: "it cannot be renewed" })
    )
})
