/**
 * Serves gateway keys.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { ConfigStore, type Saved } from "../../config/ConfigStore.ts"
import { indexKeys, type KeyEntry } from "../../config/entries/keyIndex.ts"
import { Keys, unknownKey } from "../../config/entries/Keys.ts"
import { guessableKey } from "../../config/hashedKeys.ts"
import { forEachCooperatively } from "../../config/json.ts"
import { labelIn } from "../../config/keyRecords.ts"
import { given } from "../../domain/givenText.ts"
import { isGuessable } from "../../domain/identity.ts"
import { KeyLimits, keyStatusOf } from "../../usage/KeyLimits.ts"
import { UsageStore } from "../../usage/UsageStore.ts"
import { jsonObjectBodyOf } from "../adminBody.ts"
import { changed, endedOf, lastingOf } from "../changes.ts"
import { pageOf, searchText, sortedBy } from "../contract.ts"
import { adminHandlers, respondInSlices } from "../handlers.ts"
import { AddKeyRequest, AdminKeysGroup, ChangeKeyRequest } from "./Api.ts"
import { keyValues, matches, viewKey } from "./items.ts"

const keysReply = (saved: Saved) => ({
  success: true,
  total_keys: saved.config.configured_keys.length,
  ...lastingOf(saved)
})

const readKey = jsonObjectBodyOf([AddKeyRequest])
/** Accepts `key`, so that it is refused with a hint. */
const readChange = jsonObjectBodyOf([ChangeKeyRequest, Schema.Struct({ key: AddKeyRequest.fields.key })])

const pageSizes = { fallback: 100, most: 1000 }
/** The cost of showing a key, in characters of `forEachCooperatively`. */
const itemWeight = 8192

export const AdminKeysHandlers = adminHandlers(AdminKeysGroup, function*() {
  const store = yield* ConfigStore
  const keys = yield* Keys
  const limits = yield* KeyLimits
  const usage = yield* UsageStore

  /** A key as the list shows it, after a change. */
  const itemOf = Effect.fnUntraced(function*({ config }: Saved, key: KeyEntry) {
    const [used] = yield* limits.usageOf([key.id])
    return viewKey(config, used!, key, yield* Clock.currentTimeMillis)
  })

  return {
    list: Effect.fnUntraced(function*({ endpoint, query }) {
      const config = yield* store.current
      const now = yield* Clock.currentTimeMillis
      const text = searchText(query)
      const accepted = (yield* indexKeys(config)).keys
      const found: Array<KeyEntry> = []
      const state = query.state || undefined
      const label = given(query.label)
      const isFiltered = text !== "" || state !== undefined || label !== undefined
      yield* forEachCooperatively(isFiltered ? accepted : [], (key) => {
        if (state !== undefined && keyStatusOf(config.key_records.get(key.id), now) !== state) return
        if (label !== undefined && labelIn(config)(key.id) !== label) return
        if (matches(config, key.id, text)) found.push(key)
      })
      const viewed = Effect.fnUntraced(function*(shown: ReadonlyArray<KeyEntry>) {
        const items: Array<ReturnType<typeof viewKey>> = []
        const used = yield* limits.usageOf(shown.map(({ id }) => id))
        yield* forEachCooperatively(shown, (key) => {
          items.push(viewKey(config, used[items.length]!, key, now))
          return itemWeight
        })
        return items
      })
      const all = isFiltered ? found : accepted
      const status = yield* usage.status
      if (query.sort) {
        const sorted = sortedBy(yield* viewed(all), keyValues[query.sort], query.order)
        return yield* respondInSlices(endpoint, { ...pageOf(sorted, query, pageSizes), store: status })
      }
      const { items: shown, ...page } = pageOf(all, query, pageSizes)
      return yield* respondInSlices(endpoint, { items: yield* viewed(shown), ...page, store: status })
    }),
    add: Effect.fnUntraced(function*({ request }) {
      const saved = yield* changed("a gateway key was added", keys.add(yield* readKey(request)))
      return {
        ...keysReply(saved),
        ...yield* itemOf(saved, saved),
        ...(saved.isGenerated ? { key: saved.key } : {}),
        ...(saved.config.auth.hash_keys && isGuessable(saved.key) ? { warning: guessableKey(saved.id) } : {}),
        ...endedOf(saved)
      }
    }),
    hash: Effect.fnUntraced(function*() {
      const saved = yield* changed("the gateway keys were hashed", keys.hashAll())
      return { ...keysReply(saved), hashed: saved.hashed, guessable: saved.guessable }
    }),
    change: Effect.fnUntraced(function*({ params: { id }, request }) {
      const saved = yield* changed("a gateway key was changed", keys.change(id, yield* readChange(request)))
      if (saved.key === undefined) return yield* unknownKey
      return { success: true, key: yield* itemOf(saved, { id: saved.id, key: saved.key }), ...lastingOf(saved) }
    }),
    remove: Effect.fnUntraced(function*({ params: { key } }) {
      const saved = yield* changed("a gateway key was removed", keys.remove(key))
      return { ...keysReply(saved), id: saved.id }
    })
  }
})
