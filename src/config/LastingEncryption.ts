/** Encrypts what clients keep for the gateway. `lastingKeys.ts` has the keys. */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { Encryption } from "../cluster/store/encryption.ts"
import type { GatewayError } from "../domain/GatewayError.ts"

export class LastingEncryption extends Context.Service<LastingEncryption, {
  /** Encrypts a text for the purpose `name`. Fails where clients keep nothing. */
  readonly seal: (name: string, text: string) => Effect.Effect<string, GatewayError>
  /** Decrypts a text of the purpose `name`; `undefined` if it is malformed, or from another purpose or key. */
  readonly open: Encryption["open"]
}>()("model-gateway/config/LastingEncryption") {}
