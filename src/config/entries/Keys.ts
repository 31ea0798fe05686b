/**
 * The business keys of the configuration: adding, changing and removing them (spec "Admin endpoints").
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Schema from "effect/Schema"
import { randomBytes } from "node:crypto"
import { type GatewayError, gatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import { isGuessable, isKeyId, keyId, keyIdForm, keyPrefix } from "../../domain/identity.ts"
import { formatTimestamp } from "../../domain/time.ts"
import { ConfigStore, type Saved, type UpdateError, type UpdateOptions } from "../ConfigStore.ts"
import { hashedEntry, type HashedKeys, hashKeys } from "../hashedKeys.ts"
import { sha256Hex } from "../json.ts"
import { recordOf, withRecord } from "../keyRecords.ts"
import { keysOf, keyText, noteRemoved } from "../rawConfig.ts"
import { endingGenerated, type KeysSaved } from "./endedKey.ts"
import { indexKeys, type KeyEntry } from "./keyIndex.ts"
import { type KeyFields, patchRecord, unknownModel } from "./keyRecord.ts"

/** The key to add: exactly one of `key` and `generate`, and the fields of its record. */
export interface NewKey extends KeyFields {
  /** The key, in any form except 16 hex digits. */
  readonly key?: Schema.Json | undefined
  /** True for a new key: `sk-gw-` and 43 characters. */
  readonly generate?: Schema.Json | undefined
}

/** The keys after one was added. */
export interface KeyAdded extends KeysSaved, KeyEntry {
  readonly isGenerated: boolean
}

/** The keys after one was changed. */
export interface KeyChanged extends Saved {
  readonly id: string
  /** `undefined` if an edit at the same time has removed it. */
  readonly key: string | undefined
}

/** The router's limit for a path parameter: a key must fit into the path that removes it. */
const mostPathCharacters = 4096

const fitsInPath = (key: string): boolean => key.isWellFormed() && encodeURIComponent(key).length <= mostPathCharacters

/** The error for a key that is not accepted. */
export const unknownKey = gatewayError("not_found", "No such key is configured")

const noIds: ReadonlyArray<string> = []

const generateKey = (): string => `${keyPrefix}${randomBytes(32).toString("base64url")}`

/** The key to add: the given one, or a generated one. */
const keyOf = Effect.fnUntraced(function*(given: NewKey): Effect.fn.Return<
  { readonly key: string; readonly isGenerated: boolean },
  GatewayError
> {
  const [own, generate] = [given.key ?? undefined, given.generate ?? false]
  if (typeof generate !== "boolean") return yield* invalidRequest("generate must be true or false", "generate")
  if (generate) {
    if (own !== undefined) return yield* invalidRequest("key must not be sent with generate", "key")
    return { key: generateKey(), isGenerated: true }
  }
  if (own === undefined) return yield* invalidRequest("key is required, or generate: true", "key")
  if (typeof own !== "string") return yield* invalidRequest("key must be a string", "key")
  const key = own.trim()
  if (key === "") return yield* invalidRequest("key must not be empty", "key")
  if (isKeyId(key)) return yield* invalidRequest(`key must not be ${keyIdForm}`, "key")
  if (!fitsInPath(key)) return yield* invalidRequest("key is too long or no Unicode text", "key")
  return { key, isGenerated: false }
})

/**
 * The business keys. A change fails with `invalid_request` or a `ConfigInvalid` for a wrong value, with `not_found` for an unknown key, and
 * otherwise as `ConfigStore.update` does.
 */
export class Keys extends Context.Service<Keys, {
  /** The accepted keys, in the order of the configuration. */
  readonly list: Effect.Effect<ReadonlyArray<KeyEntry>>
  /** Adds a key. The generated key of a start without keys ends immediately. */
  readonly add: (given: NewKey, options?: UpdateOptions) => Effect.Effect<KeyAdded, UpdateError | GatewayError>
  /** Changes the record of the key with an id. */
  readonly change: (
    id: string,
    fields: KeyFields,
    options?: UpdateOptions
  ) => Effect.Effect<KeyChanged, UpdateError | GatewayError>
  /** Replaces the keys by their hashes, but for those that can be guessed from one. */
  readonly hashAll: (options?: UpdateOptions) => Effect.Effect<Saved & Omit<HashedKeys, "raw">, UpdateError>
  /** Removes a key by its id, which takes precedence, or by the key itself. The key never goes upstream as a token. */
  readonly remove: (
    idOrKey: string,
    options?: UpdateOptions
  ) => Effect.Effect<Saved & Pick<KeyEntry, "id">, UpdateError | GatewayError>
}>()("model-gateway/config/Keys") {
  static readonly layer: Layer.Layer<Keys, never, ConfigStore> = Layer.effect(
    Keys,
    Effect.map(ConfigStore, (store) => ({
      list: Effect.map(Effect.flatMap(store.current, indexKeys), ({ keys }) => keys),
      add: Effect.fnUntraced(function*(given, options) {
        const { isGenerated, key } = yield* keyOf(given)
        const id = keyId(key, sha256Hex)
        const created_at = formatTimestamp(Math.floor((yield* Clock.currentTimeMillis) / 1000) * 1000)
        const adding = store.update(
          Effect.fnUntraced(function*(raw, config) {
            const isConfigured = config.configured_keys.length > 0 && (yield* indexKeys(config)).byId.has(id)
            if (isConfigured) return yield* invalidRequest("key already exists", "key")
            const entry = config.auth.hash_keys && !isGuessable(key) ? hashedEntry(key) : key
            const wrong = unknownModel(config, id, given)
            if (wrong !== undefined) return yield* wrong
            // A record that is there without a key is not used: it may be of an older key.
            const record = { ...patchRecord({}, given), created_at }
            return withRecord({ ...raw, keys: [...keysOf(raw), entry] }, id, record)
          }),
          options
        )
        return { ...yield* endingGenerated(store, adding), id, key, isGenerated }
      }),
      change: Effect.fnUntraced(function*(given, fields, options) {
        if (Object.hasOwn(fields, "key")) {
          return yield* invalidRequest("key cannot be changed; add another key and remove this one", "key")
        }
        const id = given.trim()
        const saved = yield* store.update(
          Effect.fnUntraced(function*(raw, config) {
            if (!(yield* indexKeys(config)).byId.has(id)) return yield* unknownKey
            const wrong = unknownModel(config, id, fields)
            if (wrong !== undefined) return yield* wrong
            return withRecord(raw, id, patchRecord(recordOf(raw, id), fields))
          }),
          options
        )
        return { ...saved, id, key: (yield* indexKeys(saved.config)).byId.get(id) }
      }),
      hashAll: Effect.fnUntraced(function*(options) {
        let counts = { hashed: 0, guessable: noIds }
        const saved = yield* store.update((raw) => {
          const { raw: next, ...counted } = hashKeys(raw)
          counts = counted
          return Effect.succeed(next)
        }, options)
        return { ...saved, ...counts }
      }),
      remove: Effect.fnUntraced(function*(idOrKey, options) {
        const given = idOrKey.trim()
        let id = given
        const saved = yield* store.update(
          Effect.fnUntraced(function*(raw, config) {
            const { byId } = yield* indexKeys(config)
            // An id takes precedence: an older file may have a key that looks like the id of another one.
            id = byId.has(given) ? given : keyId(given, sha256Hex)
            const key = byId.get(id)
            if (key === undefined) return yield* unknownKey
            const keys = keysOf(raw).filter((entry) => keyText(entry) !== key)
            const left = key === config.generated_key ? noteRemoved(raw, [sha256Hex(key)]) : { ...raw, keys }
            return withRecord(left, id, undefined)
          }),
          options
        )
        return { ...saved, id }
      })
    }))
  )
}
