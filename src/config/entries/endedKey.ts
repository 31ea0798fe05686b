/**
 * The end of the generated key: a start without keys accepts it until a key is configured.
 */
import * as Effect from "effect/Effect"
import { keyId } from "../../domain/identity.ts"
import type { ConfigStore, Saved } from "../ConfigStore.ts"
import { sha256Hex } from "../json.ts"

/** A change that may add keys. */
export interface KeysSaved extends Saved {
  /** The id of the generated key that the change ends; `undefined` if it ends none. */
  readonly ended: string | undefined
}

/** A change that may add keys, with the id of the generated key that it ends. Logs the end, unless the change is a dry run. */
export const endingGenerated = Effect.fnUntraced(function*<A extends Saved, E, R>(
  store: Pick<ConfigStore["Service"], "now">,
  change: Effect.Effect<A, E, R>
): Effect.fn.Return<A & KeysSaved, E, R> {
  const generated = store.now().generated_key
  const saved = yield* change
  const { keys } = saved.config
  if (generated === undefined || keys.length === 0 || keys.includes(generated)) return { ...saved, ended: undefined }
  if (!store.now().keys.includes(generated)) yield* Effect.logInfo("The generated gateway key is no longer accepted")
  return { ...saved, ended: keyId(generated, sha256Hex) }
})
