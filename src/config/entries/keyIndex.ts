/**
 * The accepted keys by their ids.
 */
import * as Effect from "effect/Effect"
import { keyId } from "../../domain/identity.ts"
import type { GatewayConfig } from "../GatewayConfig.ts"
import { forEachCooperatively, sha256Hex } from "../json.ts"

/** A key and its id, the first 16 hex digits of the key's SHA-256. */
export interface KeyEntry {
  readonly id: string
  readonly key: string
}

/** The accepted keys with their ids, in the order of `keys`. */
interface KeyIndex {
  readonly keys: ReadonlyArray<KeyEntry>
  readonly byId: ReadonlyMap<string, string>
}

const indexes = new WeakMap<ReadonlyArray<string>, KeyIndex>()

/** The index of the keys; computed once for each list. */
export const indexKeys = Effect.fnUntraced(function*({ keys: accepted }: GatewayConfig): Effect.fn.Return<KeyIndex> {
  const known = indexes.get(accepted)
  if (known !== undefined) return known
  const keys: Array<KeyEntry> = []
  yield* forEachCooperatively(accepted, (key) => {
    keys.push({ id: keyId(key, sha256Hex), key })
  })
  const index = { keys, byId: new Map(keys.map(({ id, key }) => [id, key])) }
  indexes.set(accepted, index)
  return index
})
