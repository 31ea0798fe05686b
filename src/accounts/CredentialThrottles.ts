/**
 * The throttles of a gateway's credentials. Logins of operators and bearers of callers share them.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { AdminSecrets } from "./AdminSecrets.ts"
import { type CredentialThrottle, makeCredentialThrottle } from "./CredentialThrottle.ts"

/** Checks immediately, and counts nothing. */
const unthrottled: CredentialThrottle = {
  check: (_address, check) => check,
  wasRight: () => false,
  slowedFor: () => Effect.succeed(0)
}

export class CredentialThrottles extends Context.Service<CredentialThrottles, {
  /** For the admin key and password, which a caller's bearer may be too. */
  readonly admin: CredentialThrottle
  /** For wrong business keys. */
  readonly keys: CredentialThrottle
}>()("model-gateway/accounts/CredentialThrottles") {
  static readonly layer: Layer.Layer<CredentialThrottles, never, AdminSecrets> = Layer.effect(
    CredentialThrottles,
    Effect.gen(function*() {
      const secrets = yield* AdminSecrets
      const clock = yield* Clock.Clock
      return {
        admin: makeCredentialThrottle(secrets, clock),
        keys: makeCredentialThrottle(secrets.keys, clock)
      }
    })
  )

  /** For an app that limits guesses itself. */
  static readonly layerNone: Layer.Layer<CredentialThrottles> = Layer.succeed(CredentialThrottles, {
    admin: unthrottled,
    keys: unthrottled
  })
}
