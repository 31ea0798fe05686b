/**
 * Decodes `key_records`, the permissions of business keys, and edits them together with the keys. There may be as many
 * records as keys, so decoding yields to other fibers and caches decoded records.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { allowsSome } from "../domain/allowedRoutes.ts"
import { isKeyId, keyIdOfDigest, noLabel } from "../domain/identity.ts"
import { meantRoute, type RouteTable } from "../domain/routes.ts"
import { formatTimestamp, parseTimestamp } from "../domain/time.ts"
import { blankToUndefined } from "./Account.ts"
import { type Fault, fault, faultsOf } from "./ConfigError.ts"
import { forEachCooperatively, isJsonObject, type RawConfig } from "./json.ts"
import { goneKeys } from "./rawConfig.ts"
import { KeyRecordEntry } from "./schema.ts"
import { type KeyLimit, toLimit } from "./windowLimit.ts"

export interface KeyRecord {
  readonly name: string | undefined
  /** What the usage of several keys is summed by, such as a team. */
  readonly label: string | undefined
  readonly note: string | undefined
  readonly disabled: boolean
  /** Unix milliseconds from which on the key is rejected. */
  readonly expires_at: number | undefined
  /** Allowed model names, as configured; `undefined` allows every model. */
  readonly models: ReadonlyArray<string> | undefined
  readonly max_inflight: number | undefined
  /** A `background` key leaves what upstreams reserve; `interactive` without it. */
  readonly class?: "interactive" | "background" | undefined
  readonly limits: ReadonlyArray<KeyLimit>
  /** RFC 3339, UTC. */
  readonly created_at: string | undefined
}

export type KeyRecords = ReadonlyMap<string, KeyRecord>

/** Decoded records, and the faults of the others. */
export interface DecodedRecords {
  readonly value: KeyRecords
  readonly faults: ReadonlyArray<Fault>
}

const decodeEntry = Schema.decodeUnknownResult(KeyRecordEntry)
const decodedEntries = new WeakMap<object, KeyRecord>()

/** Cost of decoding a record, in characters (`forEachCooperatively`). */
const recordWeight = 2048

/** Cost of resolving a model name. */
const modelWeight = 128

const withoutNulls = (value: unknown): unknown =>
  isJsonObject(value) ? Object.fromEntries(Object.entries(value).filter(([, field]) => field !== null)) : value

/** Removes `null` fields, which mean the same as absent ones. */
const plain = (raw: unknown): unknown => {
  const record = withoutNulls(raw)
  if (!isJsonObject(record) || !Array.isArray(record["limits"])) return record
  return { ...record, limits: record["limits"].map(withoutNulls) }
}

/** Decodes a record, or returns its faults at `key_records.<id>`. */
const decodeRecord = (id: string, raw: unknown): Result.Result<KeyRecord, Array<Fault>> => {
  const known = isJsonObject(raw) ? decodedEntries.get(raw) : undefined
  if (known !== undefined) return Result.succeed(known)
  const decoded = decodeEntry(plain(raw), { errors: "all" })
  if (Result.isFailure(decoded)) return Result.fail(faultsOf(decoded.failure, ["key_records", id]))
  const { created_at, disabled, expires_at, label, limits, max_inflight, models, name, note } = decoded.success
  const created = created_at === undefined ? undefined : parseTimestamp(created_at)
  const record: KeyRecord = {
    name: blankToUndefined(name),
    label: blankToUndefined(label),
    note: blankToUndefined(note),
    disabled: disabled ?? false,
    expires_at: expires_at === undefined ? undefined : parseTimestamp(expires_at),
    models: models?.map((model) => model.trim()),
    max_inflight,
    ...(decoded.success.class === undefined ? {} : { class: decoded.success.class }),
    limits: (limits ?? []).map((limit) => ({
      ...toLimit(limit),
      ...(limit.fallback === undefined ? {} : { fallback: limit.fallback.trim() })
    })),
    created_at: created === undefined ? undefined : formatTimestamp(created)
  }
  if (isJsonObject(raw)) decodedEntries.set(raw, record)
  return Result.succeed(record)
}

/** Decodes `key_records`. A record without a matching key is valid. */
export const decodeKeyRecords = Effect.fnUntraced(function*(
  raw: Schema.Json | undefined
): Effect.fn.Return<DecodedRecords> {
  const value = new Map<string, KeyRecord>()
  const faults: Array<Fault> = []
  if (raw === undefined) return { value, faults }
  if (!isJsonObject(raw)) return { value, faults: [fault("key_records", "must be an object")] }
  yield* forEachCooperatively(Object.entries(raw), ([id, entry]) => {
    // A name that is not an id may be a key by mistake, so the message does not repeat it.
    if (!isKeyId(id)) {
      faults.push(fault("key_records", "must name keys by their ids: the first 16 hex digits of the key's SHA-256"))
      return
    }
    const record = decodeRecord(id, entry)
    if (Result.isFailure(record)) faults.push(...record.failure)
    else value.set(id, record.success)
    return recordWeight
  })
  return { value, faults }
})

/** A warning for each name in a record's `models` that matches no model: it allows nothing. */
export const unknownModels = Effect.fnUntraced(function*(
  table: RouteTable,
  records: KeyRecords
): Effect.fn.Return<ReadonlyArray<string>> {
  const warnings: Array<string> = []
  yield* forEachCooperatively(records, ([id, { models = [] }]) => {
    models.forEach((name, place) => {
      if (!allowsSome(table, name)) {
        const what = table.config.mapped === undefined
          ? "names no model and allows nothing"
          : "names no configured model and allows nothing unless the server lists it"
        warnings.push(`key_records.${id}.models[${place}] ${what}`)
      }
    })
    return models.length * modelWeight
  })
  return warnings
})

/**
 * A fault for each `fallback` that names no model, and that `mayBe` does not know either. Where a server lists models that are not configured, a name may be one of them: it gets
 * a warning.
 */
export const unknownFallbacks = Effect.fnUntraced(function*(
  table: RouteTable,
  records: KeyRecords,
  mayBe: (name: string) => boolean
): Effect.fn.Return<{ readonly faults: ReadonlyArray<Fault>; readonly warnings: ReadonlyArray<string> }> {
  const faults: Array<Fault> = []
  const warnings: Array<string> = []
  yield* forEachCooperatively(records, ([id, { limits }]) => {
    limits.forEach(({ fallback }, place) => {
      if (fallback === undefined || mayBe(fallback) || meantRoute(table, "usual", fallback) !== undefined) return
      const field = `key_records.${id}.limits[${place}].fallback`
      if (table.config.mapped === undefined) faults.push(fault(field, "must name a model or a route"))
      else warnings.push(`${field} names no configured model and serves nothing unless the server lists it`)
    })
    return limits.length * modelWeight
  })
  return { faults, warnings }
})

/** The label that each key has in a configuration, by its id; `noLabel` without one. */
export const labelIn = ({ key_records }: { readonly key_records: KeyRecords }) => (id: string): string =>
  key_records.get(id)?.label ?? noLabel

/** The raw record of a key; empty if the key has no record. */
export const recordOf = (raw: RawConfig, id: string): RawConfig => {
  const records = raw["key_records"]
  const record = isJsonObject(records) && Object.hasOwn(records, id) ? records[id] : undefined
  return isJsonObject(record) ? record : {}
}

/** Replaces the record of a key; `undefined` removes it. */
export const withRecord = (raw: RawConfig, id: string, record: RawConfig | undefined): RawConfig => {
  const { [id]: _before, ...others } = isJsonObject(raw["key_records"]) ? raw["key_records"] : {}
  const records = record === undefined ? others : { ...others, [id]: record }
  const { key_records: _records, ...rest } = raw
  return Object.keys(records).length === 0 ? rest : { ...rest, key_records: records }
}

/** Removes from `after` the records of keys that `before` has and `after` does not. */
export const dropOrphans = Effect.fnUntraced(
  function*(before: RawConfig, after: RawConfig): Effect.fn.Return<RawConfig> {
    const records = after["key_records"]
    if (!isJsonObject(records) || before["keys"] === after["keys"]) return after
    const gone = new Set(goneKeys(before, after).map(keyIdOfDigest))
    if (gone.size === 0) return after
    const left = Object.fromEntries(Object.entries(records).filter(([id]) => !gone.has(id)))
    const { key_records: _records, ...rest } = after
    return Object.keys(left).length === 0 ? rest : { ...rest, key_records: left }
  }
)
