/**
 * Three-way merge of configurations: combines the changes of two sides since a common base, unless both changed the same
 * field.
 *
 * Keys merge as a set and accounts by identity, so that two additions never conflict. Everything else merges field by
 * field.
 */
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import { identityKeys } from "../domain/identity.ts"
import { ConfigConflict } from "./ConfigError.ts"
import { canonicalJson, forEachCooperatively, isJsonObject, type RawConfig, sha256Hex } from "./json.ts"
import { keyText } from "./rawConfig.ts"

type Value = Schema.Json | undefined

const same = (a: Value, b: Value): boolean =>
  a === b || (a !== undefined && b !== undefined && canonicalJson(a) === canonicalJson(b))

/** Like `same`; the order of fields counts, since the order of upstreams and routes has a meaning. */
const identical = (a: Value, b: Value): boolean =>
  a === b || (a !== undefined && b !== undefined && JSON.stringify(a) === JSON.stringify(b))

/** The names of both sides, in the order of the side that changed it; `theirs` where both did. */
const namesOf = (base: RawConfig, ours: RawConfig, theirs: RawConfig): ReadonlySet<string> => {
  const before = Object.keys(base)
  const kept = before.filter((name) => Object.hasOwn(theirs, name))
  const isReordered = !identical(kept, Object.keys(theirs).filter((name) => Object.hasOwn(base, name)))
  const [first, second] = isReordered ? [theirs, ours] : [ours, theirs]
  return new Set([...Object.keys(first), ...Object.keys(second)])
}

/** Merges one value. Adds the places that both sides changed to `conflicts`. `undefined` is an absent value. */
const mergeValue = (base: Value, ours: Value, theirs: Value, place: string, conflicts: Array<string>): Value => {
  if (identical(base, theirs)) return ours
  if (identical(base, ours) || identical(ours, theirs)) return theirs
  if (!isJsonObject(ours) || !isJsonObject(theirs) || (base !== undefined && !isJsonObject(base))) {
    if (same(base, theirs)) return ours
    if (same(base, ours) || same(ours, theirs)) return theirs
    conflicts.push(place)
    return theirs
  }
  const merged: Array<[string, Schema.Json]> = []
  for (const name of namesOf(base ?? {}, ours, theirs)) {
    const own = (side: RawConfig | undefined): Value =>
      side !== undefined && Object.hasOwn(side, name) ? side[name] : undefined
    const value = mergeValue(own(base), own(ours), own(theirs), place === "" ? name : `${place}.${name}`, conflicts)
    if (value !== undefined) merged.push([name, value])
  }
  return Object.fromEntries(merged)
}

const keyIdentity = (key: Schema.Json): string => keyText(key) || canonicalJson(key)

const accountIdentity = (account: Schema.Json): string =>
  isJsonObject(account) ? identityKeys(account, sha256Hex)[0] ?? canonicalJson(account) : canonicalJson(account)

const listOf = (raw: RawConfig, name: string): ReadonlyArray<Schema.Json> => {
  const list = raw[name]
  return Array.isArray(list) ? list : []
}

const withoutLists = ({ accounts: _accounts, keys: _keys, ...rest }: RawConfig): RawConfig => rest

const mergeLists = Effect.fnUntraced(function*(
  sides: readonly [base: RawConfig, ours: RawConfig, theirs: RawConfig],
  name: string,
  identityOf: (item: Schema.Json) => string,
  placeOf: (identity: string) => string,
  conflicts: Array<string>
) {
  const index = Effect.fnUntraced(function*(raw: RawConfig) {
    const items = new Map<string, Schema.Json>()
    yield* forEachCooperatively(listOf(raw, name), (item) => {
      items.set(identityOf(item), item)
    })
    return items
  })
  const [base, ours, theirs] = [yield* index(sides[0]), yield* index(sides[1]), yield* index(sides[2])]
  const merged: Array<Schema.Json> = []
  yield* forEachCooperatively([...new Set([...theirs.keys(), ...ours.keys()])], (id) => {
    const value = mergeValue(base.get(id), ours.get(id), theirs.get(id), placeOf(id), conflicts)
    if (value !== undefined) merged.push(value)
  })
  return merged
})

/**
 * Applies the changes from `base` to `ours` on top of `theirs`. Fails with the places that both sides changed to different
 * values.
 */
export const mergeConfigs = Effect.fnUntraced(function*(
  base: RawConfig,
  ours: RawConfig,
  theirs: RawConfig
): Effect.fn.Return<RawConfig, ConfigConflict> {
  const conflicts: Array<string> = []
  const sides = [base, ours, theirs] as const
  const keys = yield* mergeLists(sides, "keys", keyIdentity, () => "keys", conflicts)
  const accounts = yield* mergeLists(sides, "accounts", accountIdentity, (id) => `accounts[${id}]`, conflicts)
  const merged = mergeValue(withoutLists(base), withoutLists(ours), withoutLists(theirs), "", conflicts)
  if (conflicts.length > 0 || !isJsonObject(merged)) {
    return yield* new ConfigConflict({
      message: `the configuration was changed elsewhere at the same time: ${[...new Set(conflicts)].join(", ")}`
    })
  }
  return {
    ...merged,
    ...(ours["keys"] ?? theirs["keys"]) === undefined ? {} : { keys },
    ...(ours["accounts"] ?? theirs["accounts"]) === undefined ? {} : { accounts }
  }
})
