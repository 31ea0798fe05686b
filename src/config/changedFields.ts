/**
 * What a change of the configuration changed, for the history of changes and for log lines. Secrets are `***`, and so is every value
 * of a field that the schema does not know: a misspelt name may hold a secret.
 */
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import { shortenName } from "../domain/GatewayError.ts"
import { hashOfKey, identifierOf, identityKeys, keyId, tokenPreview } from "../domain/identity.ts"
import { keyWithin } from "../domain/upstreamNames.ts"
import { ConfigDocument } from "./document.ts"
import { below, shownAddress, shownAddresses, shownValue } from "./hidden.ts"
import { canonicalJson, forEachCooperatively, isJsonObject, type RawConfig, sha256Hex } from "./json.ts"
import { recordOf } from "./keyRecords.ts"
import { accountsOf, keysOf, keyText } from "./rawConfig.ts"
import { hidden } from "./references.ts"
import { fieldsOf, type Known } from "./unknownFields.ts"
import { webhooksOf } from "./webhooks.ts"

/** A field with its values as texts; `null` where it is absent. */
export interface ChangedField {
  readonly path: string
  readonly before: string | null
  readonly after: string | null
}

/** The difference of two configurations. */
export interface Difference {
  /** Whether anything differs, the gateway's own state included. */
  readonly differs: boolean
  /** At most 100. */
  readonly fields: ReadonlyArray<ChangedField>
  /** Number of changed fields that are not in `fields`. */
  readonly more: number
}

type Value = Schema.Json | undefined

/** Bounds the fields of a difference, and the characters of a value. */
const mostFields = 100
const longestValue = 200

/** State that changes with other fields, and tells an operator nothing. */
const ownState: ReadonlySet<string> = new Set([
  "admin.generation",
  "admin.jwt_valid_after_unix",
  "admin.password_check",
  "auth.removed_keys"
])

/** Names of fields with secrets: passwords, tokens, keys and hashes, in every group. */
const secretName = /(?:^|_)(?:password|passwd|token|secret|hash|key|check|credential)$/i

let document: Known | undefined
const knownFields = (): Known => document ??= fieldsOf([ConfigDocument])

/** Fields with an address alone. Other texts may contain one. */
const addressFields: ReadonlySet<string> = new Set(["base_url", "proxy", "url"])

/** A text without private keys, certificates, and the secrets of addresses. */
const shownText = (text: string, name: string): string => {
  if (text.includes("-----BEGIN")) return hidden
  return addressFields.has(name) ? shownAddress(text) : shownAddresses(text)
}

/** A value of a field of this name without its secrets. */
const shown = (value: Schema.Json, name: string, known: Known | undefined): Schema.Json => {
  const show = (value: string | number | boolean, path: ReadonlyArray<string>, sensitive: boolean) => {
    const field = path.at(-1)!
    if (sensitive || secretName.test(field)) return hidden
    return typeof value === "string" ? shownText(value, field) : value
  }
  return shownValue(value, known, show, [name])
}

const cut = (text: string): string =>
  text.length > longestValue ? `${text.slice(0, longestValue - 1).toWellFormed()}…` : text

const textOf = (value: Value, name: string, known: Known | undefined): string | null => {
  if (value === undefined) return null
  const visible = shown(value, name, known)
  return cut(typeof visible === "string" ? visible : JSON.stringify(visible))
}

const same = (a: Value, b: Value): boolean =>
  a === b || (a !== undefined && b !== undefined && canonicalJson(a) === canonicalJson(b))

const noFields: RawConfig = {}

class Fields {
  readonly found: Array<ChangedField> = []
  more = 0
  differs = false

  add(path: string, before: string | null, after: string | null): void {
    this.differs = true
    if (ownState.has(path)) return
    if (this.found.length < mostFields) this.found.push({ path, before, after })
    else this.more++
  }

  /** Adds a field whose values differ, or the fields in it if both are objects. */
  compare(path: string, name: string, before: Value, after: Value, known: Known | undefined): void {
    if (same(before, after)) return
    if (isJsonObject(before) && isJsonObject(after) && known?.sensitive !== true) {
      return this.compareFields(path, before, after, known)
    }
    this.add(path, textOf(before, name, known), textOf(after, name, known))
  }

  compareFields(path: string, before: RawConfig, after: RawConfig, known: Known | undefined): void {
    for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
      this.compare(`${path}.${shortenName(name)}`, name, own(before, name), own(after, name), below(known, name))
    }
  }
}

const own = (raw: RawConfig, name: string): Value => Object.hasOwn(raw, name) ? raw[name] : undefined

const objectOf = (value: Value): RawConfig => isJsonObject(value) ? value : noFields

/** The names of both sides as texts, if the order of the names that both have differs. */
const reordered = (before: RawConfig, after: RawConfig): readonly [string, string] | undefined => {
  const kept = Object.keys(before).filter((name) => Object.hasOwn(after, name)).join(", ")
  const now = Object.keys(after).filter((name) => Object.hasOwn(before, name)).join(", ")
  return kept === now ? undefined : [cut(kept), cut(now)]
}

const recordName = (raw: RawConfig, id: string): string | undefined => {
  const { name } = recordOf(raw, id)
  return typeof name === "string" && name.trim() !== "" ? shortenName(name.trim()) : undefined
}

/** Compares the items of lists that are in one of them only, by the identity that `idOf` gives them. */
const compareLists = Effect.fnUntraced(function*<A extends Schema.Json>(
  before: ReadonlyArray<A>,
  after: ReadonlyArray<A>,
  idOf: (item: A) => string,
  compare: (before: A | undefined, after: A | undefined, id: string) => void
) {
  const [old, fresh] = [new Set(before), new Set(after)]
  const gone = new Map<string, A>()
  yield* forEachCooperatively(old, (item) => {
    if (!fresh.has(item)) gone.set(idOf(item), item)
  })
  yield* forEachCooperatively(fresh, (item) => {
    if (old.has(item)) return
    const id = idOf(item)
    compare(gone.get(id), item, id)
    gone.delete(id)
  })
  yield* forEachCooperatively(gone, ([id, item]) => compare(item, undefined, id))
})

const previewIn = (key: string): string => hashOfKey(key)?.preview ?? tokenPreview(key)

const compareKeys = Effect.fnUntraced(function*(fields: Fields, before: RawConfig, after: RawConfig) {
  const known = below(below(knownFields(), "key_records"), "")
  const listed = new Set<string>()
  const trimmed = (raw: RawConfig) => keysOf(raw).map(keyText)
  const keys = before["keys"] === after["keys"] ? [] : [trimmed(before), trimmed(after)]
  yield* compareLists(keys[0] ?? [], keys[1] ?? [], (key) => keyId(key, sha256Hex), (old, key, id) => {
    listed.add(id)
    const name = recordName(after, id) ?? recordName(before, id) ?? previewIn(key ?? old ?? "")
    const side = (raw: RawConfig, there: boolean) => {
      const record = recordOf(raw, id)
      return !there ? null : Object.keys(record).length === 0 ? hidden : textOf(record, "", known)
    }
    fields.add(`keys[${name}]`, side(before, old !== undefined), side(after, key !== undefined))
  })
  const [old, fresh] = [objectOf(before["key_records"]), objectOf(after["key_records"])]
  if (old === fresh) return
  yield* forEachCooperatively(new Set([...Object.keys(old), ...Object.keys(fresh)]), (id) => {
    if (listed.has(id) || old[id] === fresh[id]) return
    const name = recordName(before, id) ?? recordName(after, id) ?? shortenName(id)
    fields.compareFields(`keys[${name}]`, recordOf(before, id), recordOf(after, id), known)
  })
})

const nameOfAccount = (account: RawConfig): string => {
  const { upstream } = account
  const names = ["email", "mobile", "token"]
  const texts = names.map((name) => [name, typeof account[name] === "string" ? account[name] : undefined])
  const identity = { ...Object.fromEntries(texts), credential: account["credential"] }
  return shortenName(keyWithin(typeof upstream === "string" ? upstream.trim() : "", identifierOf(identity, sha256Hex)))
}

const compareAccounts = Effect.fnUntraced(function*(fields: Fields, before: RawConfig, after: RawConfig) {
  if (before["accounts"] === after["accounts"]) return
  const known = below(knownFields(), "accounts")?.items
  yield* compareLists(
    accountsOf(before),
    accountsOf(after),
    (account) => identityKeys(account, sha256Hex)[0] ?? "",
    (old, account) => fields.compare(`accounts[${nameOfAccount(account ?? old!)}]`, "", old, account, known)
  )
})

const compareTokens = (fields: Fields, before: Value, after: Value): void => {
  const known = below(below(knownFields(), "admin"), "tokens")?.items
  const listOf = (value: Value) => Array.isArray(value) ? value.filter(isJsonObject) : []
  const byId = (list: ReadonlyArray<RawConfig>) => new Map(list.map((token) => [String(token["id"]), token]))
  const [old, fresh] = [byId(listOf(before)), byId(listOf(after))]
  for (const id of new Set([...old.keys(), ...fresh.keys()])) {
    const { name } = fresh.get(id) ?? old.get(id)!
    fields.compare(`admin.tokens[${shortenName(String(name ?? id))}]`, "", old.get(id), fresh.get(id), known)
  }
}

const compareWebhooks = (fields: Fields, before: RawConfig, after: RawConfig): void => {
  const known = below(knownFields(), "webhooks")?.items
  const byName = (raw: RawConfig) => new Map(webhooksOf(raw).map((webhook) => [String(webhook["name"]), webhook]))
  const [old, fresh] = [byName(before), byName(after)]
  for (const name of new Set([...old.keys(), ...fresh.keys()])) {
    fields.compare(`webhooks[${shortenName(name)}]`, "", old.get(name), fresh.get(name), known)
  }
}

const withoutTokens = ({ tokens: _tokens, ...group }: RawConfig): RawConfig => group

/** Lists that are compared by the identity of their items. */
const lists: ReadonlySet<string> = new Set(["keys", "key_records", "accounts", "webhooks"])
/** Maps whose order has a meaning. */
const ordered: ReadonlySet<string> = new Set(["upstreams", "routes"])

/** Compares two configurations, in slices. */
export const changedFields = Effect.fnUntraced(function*(
  before: RawConfig,
  after: RawConfig
): Effect.fn.Return<Difference> {
  const fields = new Fields()
  if (before !== after) {
    yield* compareKeys(fields, before, after)
    yield* compareAccounts(fields, before, after)
    compareWebhooks(fields, before, after)
    for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
      const [old, fresh] = [own(before, name), own(after, name)]
      const known = below(knownFields(), name)
      if (lists.has(name) || old === fresh) continue
      if (known === undefined || ![old, fresh].some(isJsonObject)) {
        fields.compare(shortenName(name), name, old, fresh, known)
        continue
      }
      const [oldGroup, group] = [objectOf(old), objectOf(fresh)]
      const order = ordered.has(name) ? reordered(oldGroup, group) : undefined
      if (order !== undefined) fields.add(`${name} (order)`, ...order)
      if (name === "admin") {
        compareTokens(fields, oldGroup["tokens"], group["tokens"])
        fields.compareFields(name, withoutTokens(oldGroup), withoutTokens(group), known)
      } else fields.compareFields(name, oldGroup, group, known)
    }
  }
  return { differs: fields.differs, fields: fields.found, more: fields.more }
})
