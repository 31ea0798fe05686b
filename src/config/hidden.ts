/**
 * Secrets of the configuration as replies, the history and log lines show them: `***`. A reply that is sent back keeps what is there.
 *
 * Secret are the fields that the schema calls sensitive, and of addresses the user information, the values of the query and the fragment.
 * So is every field that the schema does not know: a misspelt or misplaced name may hold a secret.
 */
import * as Redacted from "effect/Redacted"
import type * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import { CredentialEntry } from "./document.ts"
import type { UpstreamConfig } from "./GatewayConfig.ts"
import { isJsonObject, type RawConfig } from "./json.ts"
import { hidden } from "./references.ts"
import { UpstreamEntry, UpstreamGroup, WebhookEntry } from "./schema.ts"
import { fieldsOf, type Known } from "./unknownFields.ts"

/** A query with its names; a part without a name is a value. */
const shownQuery = (search: string): string =>
  search.split("&").map((part) => {
    const value = part.indexOf("=") + 1
    return `${part.slice(0, value === 0 && part.startsWith("?") ? 1 : value)}${hidden}`
  }).join("&")

/** An address that is not of http: several hosts, say, which no `URL` has. Its user information ends at its last `@`. */
const shownOther = (text: string): string => {
  if (!/[@?#]/.test(text)) return text
  const [, scheme, rest = "", tail = ""] = /^\s*([a-z][a-z0-9+.-]*:\/\/)([^?#]*)(.*)$/is.exec(text) ?? []
  if (scheme === undefined || tail.includes("@")) return hidden
  const host = rest.slice(rest.lastIndexOf("@") + 1)
  return `${scheme}${host === rest ? "" : `${hidden}@`}${host}${tail === "" ? "" : `${tail.charAt(0)}${hidden}`}`
}

const isHttp = (text: string): boolean => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)

/** An address without its user information, the values of its query, and its fragment. Other text stays as it is. */
export const shownAddress = (text: string): string => {
  if (!isHttp(text)) return shownOther(text)
  const { hash, host, password, pathname, protocol, search, username } = new URL(text)
  const user = username + password
  if (user + search + hash === "") return text
  const path = pathname === "/" && search === "" ? "" : pathname
  const query = search === "" ? "" : shownQuery(search)
  return `${protocol}//${user === "" ? "" : `${hidden}@`}${host}${path}${query}${hash === "" ? "" : `#${hidden}`}`
}

/** A text whose addresses, wherever they are in it, are as `shownAddress` shows them. */
export const shownAddresses = (text: string): string =>
  (isHttp(text) ? shownAddress(text) : text).replace(/[a-z][a-z0-9+.-]*:[\\/]{2}\S*|https?:\S+/gi, shownAddress)

/** The known fields of a field or of an entry of a map; `undefined` for an unknown field. */
export const below = (known: Known | undefined, name: string): Known | undefined =>
  known?.fields.get(name) ?? known?.others

/**
 * A value of the configuration without secrets: those of unknown fields and in sensitive objects are hidden, and `show` shows the others,
 * told whether they are sensitive themselves. The path begins at the value.
 */
export const shownValue = (
  value: Schema.Json,
  known: Known | undefined,
  show: (value: string | number | boolean, path: ReadonlyArray<string>, sensitive: boolean) => Schema.Json,
  path: ReadonlyArray<string> = []
): Schema.Json => {
  if (known === undefined) return hidden
  if (value === null) return null
  if (Array.isArray(value)) return value.map((item) => shownValue(item, known.items, show, path))
  if (!isJsonObject(value)) return show(value as string | number | boolean, path, known.sensitive)
  return Object.fromEntries(
    Object.entries(value).map(([field, item]) => [
      field,
      known.sensitive ? hidden : shownValue(item, below(known, field), show, [...path, field])
    ])
  )
}

let ofEntry: Known | undefined
const entryFields = (): Known => ofEntry ??= fieldsOf([UpstreamGroup, UpstreamEntry])

let ofWebhook: Known | undefined
const webhookFields = (): Known => ofWebhook ??= fieldsOf([WebhookEntry])

/** The fields of an entry of `upstreams` or `webhooks` that may contain secrets, each with how it is shown. */
const shownTexts: ReadonlyMap<string, (text: string) => string> = new Map([
  ["base_url", shownAddress],
  ["proxy", shownAddress],
  ["url", shownAddress],
  ["tls.key", (text) => text.includes("-----BEGIN") ? hidden : text]
])

const shownText = (
  value: string | number | boolean,
  path: ReadonlyArray<string>,
  sensitive = false
): string | number | boolean => {
  const show = shownTexts.get(path.join(".")) ?? (sensitive ? () => hidden : undefined)
  return typeof value !== "string" || show === undefined ? value : show(value)
}

/** An entry of `upstreams`, or the group `upstream`, as written but for its secrets. */
export const shownEntry = (entry: RawConfig): RawConfig => {
  const shown = shownValue(entry, entryFields(), shownText)
  return isJsonObject(shown) ? shown : {}
}

/** An entry of `webhooks` as written but for its secrets. */
export const shownWebhook = (entry: RawConfig): RawConfig => {
  const shown = shownValue(entry, webhookFields(), shownText)
  return isJsonObject(shown) ? shown : {}
}

const keep = (before: Schema.Json | undefined, given: Schema.Json, path: ReadonlyArray<string>): Schema.Json => {
  if (before === undefined) return given
  const isKept = given === hidden || (typeof before === "string" && given === shownText(before, path))
  if (isKept) return before
  return isJsonObject(before) && isJsonObject(given) ? keepFields(before, given, path) : given
}

const keepFields = (before: RawConfig, given: RawConfig, path: ReadonlyArray<string>): RawConfig =>
  Object.fromEntries(
    Object.entries(given).map(([name, value]) => [
      name,
      keep(Object.hasOwn(before, name) ? before[name] : undefined, value, [...path, name])
    ])
  )

/** Where the secrets of an entry go, as far as a change of them counts: the origin of an address, or other text as it is. */
const originOf = (address: Schema.Json | undefined): Schema.Json | undefined =>
  typeof address === "string" && URL.canParse(address) ? new URL(address).origin : address

/** Whether an address of an entry has another origin than before. One as it is shown is the one before. */
const hasMoved = (before: RawConfig, given: RawConfig): boolean =>
  ["base_url", "url"].some((field) =>
    Object.hasOwn(given, field) && originOf(keep(before[field], given[field]!, [field])) !== originOf(before[field])
  )

/**
 * Replaces what `shownEntry` or `shownWebhook` shows of a secret by the secret of the entry `before`. Where the address has another origin,
 * only the proxy's is replaced: the others are for the server before, and the decoder asks for their values.
 */
export const keepHidden = (before: RawConfig, given: RawConfig): RawConfig => {
  const { proxy } = before
  const ofProxy: RawConfig = proxy === undefined ? {} : { proxy }
  return keepFields(hasMoved(before, given) ? ofProxy : before, given, [])
}

/** An entry without the secrets that go to its server. An address with a secret is as it is shown, which the decoder refuses. */
export const withoutSecrets = ({ headers: _headers, ...entry }: RawConfig): RawConfig => {
  const { base_url, tls } = entry
  return {
    ...entry,
    ...(typeof base_url === "string" ? { base_url: shownAddress(base_url) } : {}),
    ...(isJsonObject(tls) ? { tls: Struct.omit(tls, ["cert", "key"]) } : {})
  }
}

let ofCredential: Known | undefined

/** A credential of an account as written but for its secrets. */
export const shownCredential = (credential: Schema.Json): Schema.Json =>
  shownValue(
    credential,
    ofCredential ??= fieldsOf([CredentialEntry]),
    (value, _, sensitive) => sensitive ? hidden : value
  )

/** The proxy of an entry of `accounts`: `***` and the address as it is shown keep the proxy of the entry before. */
export const keepProxy = (before: RawConfig | undefined, given: Schema.Json): Schema.Json => {
  const own = before?.["proxy"]
  return typeof own === "string" && (given === hidden || given === shownAddress(own)) ? own : given
}

/** The proxy of an upstream or account, without its user information. */
export const shownProxy = (proxy: UpstreamConfig["proxy"]): string | undefined =>
  proxy === undefined ? undefined : shownAddress(Redacted.value(proxy))
