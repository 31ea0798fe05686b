/**
 * Settings that are valid and do not do what their operator expects. Each piece of advice names the place, what follows, and what to do.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import type * as Schema from "effect/Schema"
import { keyId } from "../domain/identity.ts"
import { normalizeModelName } from "../domain/models.ts"
import { hasNoNames } from "../domain/nameTable.ts"
import { targetName } from "../domain/routes.ts"
import type { EnvironmentShape } from "./Environment.ts"
import type { GatewayConfig } from "./GatewayConfig.ts"
import { forEachCooperatively, isJsonObject, type RawConfig, sha256Hex } from "./json.ts"

/** A configuration before the advice on it. */
type Decoded = Omit<GatewayConfig, "warnings">

/** Names that one piece of advice lists. */
const mostNamed = 3

/** Cost of computing the id of a key, in characters (`forEachCooperatively`). */
const keyWeight = 256

const listed = (names: ReadonlyArray<string>): string =>
  `${names.slice(0, mostNamed).join(", ")}${names.length > mostNamed ? ` and ${names.length - mostNamed} more` : ""}`

/** Ids of lists of keys, and advice on groups: most changes leave these as they are. */
const idsOf = new WeakMap<object, ReadonlySet<string>>()
const adviceOf = new WeakMap<object, ReadonlyArray<string>>()

/** Records whose id no key has: the key for which they were written has no limits. */
const recordsWithoutKey = Effect.fnUntraced(function*({ configured_keys, key_records }: Decoded) {
  if (key_records.size === 0) return []
  let ids = idsOf.get(configured_keys)
  if (ids === undefined) {
    const made = new Set<string>()
    yield* forEachCooperatively(configured_keys, (key) => {
      made.add(keyId(key, sha256Hex))
      return keyWeight
    })
    idsOf.set(configured_keys, ids = made)
  }
  return [...key_records.keys()].filter((id) => !ids.has(id)).map((id) =>
    `key_records.${id} is of no configured key, so it limits nothing: name the id of a key (its page in the console shows it), or remove the record`
  )
})

/** All names by which a price is found. */
const pricedNames = ({ model_aliases, route_table, upstreams }: Decoded): ReadonlySet<string> => {
  const names = new Set([...route_table.routes.keys(), ...route_table.config.listed?.keys() ?? []])
  for (const targets of route_table.upstreams.values()) {
    for (const target of targets.values()) {
      names.add(normalizeModelName(target.model.id))
      names.add(normalizeModelName(targetName(target)))
    }
  }
  for (const [name, { models }] of upstreams) {
    for (const { model } of models) {
      names.add(normalizeModelName(model))
      names.add(`${name}/${normalizeModelName(model)}`)
    }
  }
  for (const alias of model_aliases.keys()) names.add(normalizeModelName(alias))
  return names
}

const pricesWithoutModel = (config: Decoded): ReadonlyArray<string> => {
  if (hasNoNames(config.prices)) return []
  const { exact, prefixes } = config.prices
  const known = pricedNames(config)
  const names = [...known]
  const unused = [
    ...[...exact.keys()].filter((name) => !known.has(name)),
    ...prefixes.map(([prefix]) => prefix).filter((prefix) => !names.some((name) => name.startsWith(prefix)))
      .map((prefix) => `${prefix}*`)
  ]
  if (unused.length === 0) return []
  const what = unused.length === 1 ? "is a price of no known model" : `has ${unused.length} prices of no known model`
  const unless = config.route_table.config.mapped === undefined ? "" : ", unless the server lists it"
  return [
    unused.length === 1
      ? `prices.${unused[0]} ${what} and is never used${unless}: name a model, a route or upstream/model`
      : `prices ${what} (${listed(unused)}), which are never used${unless}: name models, routes or upstream/model`
  ]
}

/** Whether the list may have the price of a model. An upstream without models serves those that its server lists. */
const hasListPrices = ({ prices: { served }, upstreams }: Decoded): boolean =>
  served !== undefined && !hasNoNames(served.list) &&
  [...upstreams].some(([name, { models }]) =>
    (models.length === 0 ? [name] : models.map(({ model }) => normalizeModelName(model))).some((model) =>
      served.isListed(name, model)
    )
  )

const costLimitsWithoutPrices = (config: Decoded): ReadonlyArray<string> => {
  const { key_records, prices } = config
  if (!hasNoNames(prices) || hasListPrices(config)) return []
  const limited = [...key_records].filter(([, { limits }]) => limits.some(({ cost }) => cost !== undefined))
  if (limited.length === 0) return []
  return [
    `${
      listed(limited.map(([id]) => `key_records.${id}`))
    }: a cost limit without any price refuses every request of the key: set prices`
  ]
}

/** How other programs write a reference to a variable. The name is the first group that matched. */
const foreignReference = /^(?:os\.environ\/([A-Za-z_]\w*)|\$([A-Za-z_]\w*)|%([A-Za-z_]\w*)%|env:([A-Za-z_]\w*))$/

/** Secrets that look like references to variables of the environment, and are sent or compared as they are written. */
function* literalReferences(value: unknown, place: string, isSecret: boolean): Generator<string> {
  if (typeof value === "string") {
    const name = isSecret ? foreignReference.exec(value.trim())?.slice(1).find((part) => part !== undefined) : undefined
    if (name === undefined) return
    yield place.startsWith("keys[")
      ? `${place} is the key itself, not a variable's value: keys have no references; write the key`
      : `${place} is used as it is written: write \${${name}} for the value of the variable`
  } else if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) yield* literalReferences(item, `${place}[${index}]`, isSecret)
  } else if (isJsonObject(value)) {
    for (const [name, item] of Object.entries(value)) {
      yield* literalReferences(item, place === "" ? name : `${place}.${name}`, isSecret || secretFields.has(name))
    }
  }
}

/** Fields that are secrets, or whose content is. */
const secretFields: ReadonlySet<string> = new Set([
  "keys",
  "token",
  "password",
  "headers",
  "proxy",
  "secret",
  "secret_previous"
])

/** The groups of the file with such fields. */
const withSecrets = ["keys", "accounts", "upstream", "upstreams", "webhooks"] as const

const mostReferences = 20

const secretsAdvice = Effect.fnUntraced(function*(group: string, value: Schema.Json | undefined) {
  if (value === undefined || value === null || typeof value !== "object") return []
  const known = adviceOf.get(value)
  if (known !== undefined) return known
  const found: Array<string> = []
  const isList = Array.isArray(value)
  yield* forEachCooperatively(isList ? value : [value], (entry, index) => {
    if (found.length >= mostReferences) return
    found.push(...literalReferences(entry, isList ? `${group}[${index}]` : group, secretFields.has(group)))
    return keyWeight
  })
  adviceOf.set(value, found)
  return found
})

/** The advice on a configuration: one sentence each, which begins with a place of the file. Costs one pass over what has changed. */
export const adviceOn = Effect.fnUntraced(
  function*(raw: RawConfig, config: Decoded): Effect.fn.Return<ReadonlyArray<string>> {
    return [
      ...(yield* recordsWithoutKey(config)),
      ...costLimitsWithoutPrices(config),
      ...pricesWithoutModel(config),
      ...(yield* Effect.forEach(withSecrets, (group) => secretsAdvice(group, raw[group]))).flat()
    ]
  }
)

/** Below this, an admin key can be found by trying. */
const shortestAdminKey = 16

/** The advice on the environment's variables. `file` is the content of the configuration file, if there is one. */
export const environmentAdvice = (
  { adminKey, configJson, configPath, configPathNamed }: EnvironmentShape,
  file: Option.Option<unknown>
): ReadonlyArray<string> => [
  ...configJson === undefined && configPathNamed && Option.isNone(file)
    ? [
      `GATEWAY_CONFIG_PATH names ${configPath}, which does not exist: the gateway uses defaults until a change writes the file`
    ]
    : [],
  ...adminKey !== undefined && Redacted.value(adminKey).length < shortestAdminKey
    ? [`GATEWAY_ADMIN_KEY has fewer than ${shortestAdminKey} characters: take a longer one, which cannot be guessed`]
    : []
]
