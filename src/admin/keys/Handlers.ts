/**
 * Serves business keys.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { randomBytes } from "node:crypto"
import { ConfigStore, type Saved } from "../../config/ConfigStore.ts"
import { forEachCooperatively, type RawConfig, sha256Hex } from "../../config/json.ts"
import { recordOf, withRecord } from "../../config/keyRecords.ts"
import { keysOf, noteRemoved } from "../../config/rawConfig.ts"
import { gatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import { isKeyId, keyId, keyIdForm, keyPrefix } from "../../domain/identity.ts"
import { formatTimestamp } from "../../domain/time.ts"
import { KeyLimits, keyStatusOf } from "../../usage/KeyLimits.ts"
import { UsageStore } from "../../usage/UsageStore.ts"
import { jsonObjectBodyOf } from "../adminBody.ts"
import { changed, endedOf, endingGenerated, lastingOf } from "../changes.ts"
import { pageOf, searchText } from "../contract.ts"
import { adminHandlers, respondInSlices } from "../handlers.ts"
import { AddKeyRequest, AdminKeysGroup, ChangeKeyRequest } from "./Api.ts"
import { indexKeys, type KeyIndex, matches, viewKey } from "./items.ts"
import { patchRecord, unknownModel } from "./record.ts"

/** The router's limit for a path parameter: a key must fit into the path that removes it. */
const mostPathCharacters = 4096

const fitsInPath = (key: string): boolean => key.isWellFormed() && encodeURIComponent(key).length <= mostPathCharacters

const keysReply = (saved: Saved) => ({
  success: true,
  total_keys: saved.config.configured_keys.length,
  ...lastingOf(saved)
})

const readKey = jsonObjectBodyOf([AddKeyRequest])
/** Accepts `key`, so that the handler can refuse it with a hint. */
const readChange = jsonObjectBodyOf([ChangeKeyRequest, Schema.Struct({ key: AddKeyRequest.fields.key })])

const unknownKey = gatewayError("not_found", "No such key is configured")

const generateKey = (): string => `${keyPrefix}${randomBytes(32).toString("base64url")}`

const pageSizes = { fallback: 100, most: 1000 }
/** The cost of showing a key, in characters of `forEachCooperatively`. */
const itemWeight = 8192

/** The key to add: the given one, or a generated one. */
const keyOf = Effect.fnUntraced(function*(body: RawConfig) {
  const [given, generate] = [body["key"] ?? undefined, body["generate"] ?? false]
  if (typeof generate !== "boolean") return yield* invalidRequest("generate must be true or false", "generate")
  if (generate) {
    if (given !== undefined) return yield* invalidRequest("key must not be sent with generate", "key")
    return { key: generateKey(), isGenerated: true }
  }
  if (given === undefined) return yield* invalidRequest("key is required, or generate: true", "key")
  if (typeof given !== "string") return yield* invalidRequest("key must be a string", "key")
  const key = given.trim()
  if (key === "") return yield* invalidRequest("key must not be empty", "key")
  if (isKeyId(key)) return yield* invalidRequest(`key must not be ${keyIdForm}`, "key")
  if (!fitsInPath(key)) return yield* invalidRequest("key is too long or no Unicode text", "key")
  return { key, isGenerated: false }
})

export const AdminKeysHandlers = adminHandlers(AdminKeysGroup, function*() {
  const store = yield* ConfigStore
  const limits = yield* KeyLimits
  const usage = yield* UsageStore

  /** A key as the list shows it, after a change. */
  const itemOf = Effect.fnUntraced(function*({ config }: Saved, key: KeyIndex["keys"][number]) {
    const [used] = yield* limits.usageOf([key.id])
    return viewKey(config, used!, key, yield* Clock.currentTimeMillis)
  })

  return {
    list: Effect.fnUntraced(function*({ endpoint, query }) {
      const config = yield* store.current
      const now = yield* Clock.currentTimeMillis
      const text = searchText(query)
      const { keys } = yield* indexKeys(config)
      const found: Array<KeyIndex["keys"][number]> = []
      const state = query.state || undefined
      const isFiltered = text !== "" || state !== undefined
      yield* forEachCooperatively(isFiltered ? keys : [], (key) => {
        if (state !== undefined && keyStatusOf(config.key_records.get(key.id), now) !== state) return
        if (matches(config, key.id, text)) found.push(key)
      })
      const { items: shown, ...page } = pageOf(isFiltered ? found : keys, query, pageSizes)
      const items: Array<ReturnType<typeof viewKey>> = []
      const used = yield* limits.usageOf(shown.map(({ id }) => id))
      yield* forEachCooperatively(shown, (key) => {
        items.push(viewKey(config, used[items.length]!, key, now))
        return itemWeight
      })
      return yield* respondInSlices(endpoint, { items, ...page, store: yield* usage.status })
    }),
    add: Effect.fnUntraced(function*({ request }) {
      const body = yield* readKey(request)
      const { isGenerated, key } = yield* keyOf(body)
      const id = keyId(key, sha256Hex)
      const created_at = formatTimestamp(Math.floor((yield* Clock.currentTimeMillis) / 1000) * 1000)
      const adding = endingGenerated(
        store,
        store.update((raw, config) => {
          if (config.configured_keys.includes(key)) {
            return Effect.fail(invalidRequest("key is configured already", "key"))
          }
          const wrong = unknownModel(config, id, body)
          if (wrong !== undefined) return Effect.fail(wrong)
          // A record that is there without a key is not used: it may be of an older key.
          const record = { ...patchRecord({}, body), created_at }
          return Effect.succeed(withRecord({ ...raw, keys: [...keysOf(raw), key] }, id, record))
        })
      )
      const saved = yield* changed("a business key was added", adding)
      const item = yield* itemOf(saved, { id, key })
      return {
        ...keysReply(saved),
        ...item,
        ...(isGenerated ? { key } : {}),
        ...endedOf(saved)
      }
    }),
    change: Effect.fnUntraced(function*({ params, request }) {
      const body = yield* readChange(request)
      if (Object.hasOwn(body, "key")) {
        return yield* invalidRequest("key cannot be changed; add another key and remove this one", "key")
      }
      const id = params.id.trim()
      const saved = yield* changed(
        "a business key was changed",
        store.update(Effect.fnUntraced(function*(raw, config) {
          if (!(yield* indexKeys(config)).byId.has(id)) return yield* unknownKey
          const wrong = unknownModel(config, id, body)
          if (wrong !== undefined) return yield* wrong
          return withRecord(raw, id, patchRecord(recordOf(raw, id), body))
        }))
      )
      const key = (yield* indexKeys(saved.config)).byId.get(id)
      if (key === undefined) return yield* unknownKey
      return { success: true, key: yield* itemOf(saved, { id, key }), ...lastingOf(saved) }
    }),
    remove: Effect.fnUntraced(function*({ params }) {
      const given = params.key.trim()
      let id = given
      const saved = yield* changed(
        "a business key was removed",
        store.update(Effect.fnUntraced(function*(raw, config) {
          const { byId } = yield* indexKeys(config)
          // An id takes precedence: an older file may have a key that looks like the id of another one.
          id = byId.has(given) ? given : keyId(given, sha256Hex)
          const key = byId.get(id)
          if (key === undefined) return yield* unknownKey
          const keys = keysOf(raw).filter((entry) => typeof entry !== "string" || entry.trim() !== key)
          const left = key === config.generated_key ? noteRemoved(raw, [key]) : { ...raw, keys }
          return withRecord(left, id, undefined)
        }))
      )
      return { ...keysReply(saved), id }
    })
  }
})
