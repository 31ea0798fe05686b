/**
 * The secrets of an upstream's entry as replies show them: header values, user information in addresses, private keys. A reply that is
 * sent back keeps what is there.
 */
import * as Redacted from "effect/Redacted"
import type * as Schema from "effect/Schema"
import type { NamedUpstream } from "./GatewayConfig.ts"
import { isJsonObject, type RawConfig } from "./json.ts"
import { hidden } from "./references.ts"

/** An address without its user information. Other text stays as it is. */
export const shownAddress = (text: string): string =>
  text.replace(/^\s*([a-z][a-z0-9+.-]*:\/\/)[^/?#]*@/i, `$1${hidden}@`)

const shownKey = (text: string): string => text.includes("-----BEGIN") ? hidden : text

/** The fields of an entry that may contain secrets, each with how it is shown. */
const shownFields: ReadonlyArray<readonly [path: readonly [string, ...Array<string>], show: (text: string) => string]> =
  [
    [["base_url"], shownAddress],
    [["proxy"], shownAddress],
    [["tls", "key"], shownKey]
  ]

const at = (entry: RawConfig, path: ReadonlyArray<string>): Schema.Json | undefined => {
  let found: Schema.Json | undefined = entry
  for (const name of path) found = isJsonObject(found) && Object.hasOwn(found, name) ? found[name] : undefined
  return found
}

const set = (entry: RawConfig, [name, ...rest]: readonly [string, ...Array<string>], value: Schema.Json): RawConfig => {
  const inner = entry[name]
  const [next, ...further] = rest
  return {
    ...entry,
    [name]: next === undefined ? value : set(isJsonObject(inner) ? inner : {}, [next, ...further], value)
  }
}

const headersOf = (entry: RawConfig): RawConfig => isJsonObject(entry["headers"]) ? entry["headers"] : {}

/** An entry of `upstreams`, or the group `upstream`, as written but for its secrets. */
export const shownEntry = (entry: RawConfig): RawConfig => {
  let shown = entry
  for (const [path, show] of shownFields) {
    const value = at(shown, path)
    if (typeof value === "string") shown = set(shown, path, show(value))
  }
  const headers = Object.keys(headersOf(entry)).map((name) => [name, hidden] as const)
  return headers.length === 0 ? shown : { ...shown, headers: Object.fromEntries(headers) }
}

/** Replaces what `shownEntry` shows of a secret by the secret of the entry `before`. */
export const keepHidden = (before: RawConfig, given: RawConfig): RawConfig => {
  let kept = given
  for (const [path, show] of shownFields) {
    const [value, own] = [at(kept, path), at(before, path)]
    if (typeof own === "string" && (value === hidden || value === show(own))) kept = set(kept, path, own)
  }
  const own = headersOf(before)
  const headers = Object.entries(headersOf(given)).map(([name, value]) =>
    value === hidden && Object.hasOwn(own, name) ? [name, own[name]!] as const : [name, value] as const
  )
  return headers.length === 0 ? kept : { ...kept, headers: Object.fromEntries(headers) }
}

/** The proxy of an entry of `accounts`: `***` and the address as it is shown keep the proxy of the entry before. */
export const keepProxy = (before: RawConfig | undefined, given: Schema.Json): Schema.Json => {
  const own = before?.["proxy"]
  return typeof own === "string" && (given === hidden || given === shownAddress(own)) ? own : given
}

/** The proxy of an upstream or account, without its user information. */
export const shownProxy = (proxy: NamedUpstream["proxy"]): string | undefined =>
  proxy === undefined ? undefined : shownAddress(Redacted.value(proxy))
