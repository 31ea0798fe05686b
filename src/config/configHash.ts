/**
 * The hash of a configuration, by which a reader tells that it has changed.
 */
import * as Effect from "effect/Effect"
import { hashConfig, type RawConfig } from "./json.ts"
import { withOrder, withoutOwnFields } from "./rawConfig.ts"

const hashes = new WeakMap<RawConfig, string>()

/** SHA-256 of the canonical configuration, without instance state (`withoutOwnFields`). Computed once for each object. */
export const configHashOf = Effect.fnUntraced(function*(raw: RawConfig) {
  const known = hashes.get(raw)
  if (known !== undefined) return known
  const hash = yield* hashConfig(withOrder(withoutOwnFields(raw)))
  hashes.set(raw, hash)
  return hash
})
