/**
 * Rows of usage with the names of keys and accounts, as JSON and CSV.
 */
import * as Effect from "effect/Effect"
import type { GatewayConfig } from "../../config/GatewayConfig.ts"
import { forEachCooperatively, sha256Hex } from "../../config/json.ts"
import { labelIn } from "../../config/keyRecords.ts"
import { accountHash, noLabel } from "../../domain/identity.ts"
import { csvLine } from "../../domain/printed.ts"
import { formatTimestamp } from "../../domain/time.ts"
import { percentileNames, percentilesOf } from "../../usage/Times.ts"
import {
  amountsOf,
  costsOf,
  dimensionsBy,
  hitRateOf,
  laterMeasuresOf,
  measureNames,
  measuresOf,
  type Sums
} from "../../usage/UsageEntry.ts"
import type { Grouping, RowOrder, UsageRow } from "../../usage/UsageQuery.ts"
import { dayOf } from "../../usage/windows.ts"
import type { usageSorts } from "./Api.ts"

/** Current names of keys and accounts, `null` for unknown ones, and the currency. */
export interface Names {
  readonly currency: string | null
  readonly key: (id: string) => string | null
  /** The label of a key; `none` without one. */
  readonly label: (id: string) => string
  readonly account: (hash: string) => string | null
}

/** Finds keys and accounts by name. */
export interface NamedIds {
  /** The ids in use by the names that a query may give them. */
  readonly named: {
    readonly key: (name: string) => ReadonlyArray<string>
    readonly account: (identifier: string) => ReadonlyArray<string>
  }
  /** The labels of all keys. */
  readonly labels: () => ReadonlySet<string>
}

/** The keys of a map that have a value. */
const keysWith = <A, B>(map: ReadonlyMap<A, B>, has: (value: B) => boolean): ReadonlyArray<A> =>
  Array.from(map).flatMap(([key, value]) => has(value) ? [key] : [])

const accountNames = new WeakMap<GatewayConfig["account_table"], ReadonlyMap<string, string>>()

/** The names in the configuration; those of accounts are computed once for each list. */
export const namesOf = Effect.fnUntraced(function*(config: GatewayConfig): Effect.fn.Return<Names & NamedIds> {
  let accounts = accountNames.get(config.account_table)
  if (accounts === undefined) {
    const made = new Map<string, string>()
    yield* forEachCooperatively(config.accounts, ({ identifier, identity }) => {
      made.set(accountHash(identity[0]!, sha256Hex), identifier)
    })
    accountNames.set(config.account_table, made)
    accounts = made
  }
  const known = accounts
  return {
    currency: config.currency ?? null,
    key: (id) => config.key_records.get(id)?.name ?? null,
    label: labelIn(config),
    account: (hash) => known.get(hash) ?? null,
    named: {
      key: (name) => keysWith(config.key_records, (record) => record.name === name),
      account: (identifier) => keysWith(known, (each) => each === identifier)
    },
    labels: () => new Set(Array.from(config.key_records.values(), ({ label = noLabel }) => label))
  }
})

const dayText = (time: number): string => formatTimestamp(dayOf(time)).slice(0, "2026-11-21".length)

/** The fields that a row is grouped by, in the requested order. */
const cellsOf = (by: ReadonlyArray<Grouping>, row: UsageRow, names: Names): Array<readonly [string, string | null]> =>
  by.flatMap((name): Array<readonly [string, string | null]> => {
    switch (name) {
      case "key":
        return [["key", row.key], ["key_name", names.key(row.key)]]
      case "account":
        return [["account", row.account], ["account_identifier", names.account(row.account)]]
      case "hour":
        return [["hour", formatTimestamp(row.time)]]
      case "day":
        return [["day", dayText(row.time)]]
      default:
        return [[name, row[name]]]
    }
  })

const errorsOf = (sums: Sums): Array<readonly [string, number]> =>
  [...(sums.errors ?? [])].sort(([a], [b]) => a < b ? -1 : 1)

/** The measures by name. */
export const viewMeasures = (sums: Sums) => ({
  ...measuresOf(sums),
  ...costsOf(sums),
  ...laterMeasuresOf(sums),
  prompt_cache_hit_rate: hitRateOf(sums),
  ...percentilesOf(sums.times),
  errors: Object.fromEntries(errorsOf(sums))
})

/** The value of a measure that rows are sorted by. */
export const sortValueOf = (name: (typeof usageSorts)[number]): RowOrder["valueOf"] => {
  const index = measureNames.findIndex((each) => each === name)
  switch (name) {
    case "cost":
    case "wasted_cost":
      return (sums) => amountsOf(sums)[name]
    case "unpriced_requests":
      return (sums) => costsOf(sums)[name]
    case "cache_write_tokens":
    case "predicted_tokens":
    case "prompt_cache_misses":
      return (sums) => laterMeasuresOf(sums)[name]
    case "prompt_cache_hit_rate":
      return hitRateOf
    case "first_event_p50_ms":
    case "first_event_p95_ms":
    case "duration_p95_ms":
    case "queue_p95_ms":
    case "tokens_per_second_p50":
      return ({ times }) => percentilesOf(times)[name]
    default:
      return ({ values }) => values[index]!
  }
}

/** A row as JSON. */
export const viewRow = (by: ReadonlyArray<Grouping>, row: UsageRow, names: Names) => ({
  ...Object.fromEntries(cellsOf(by, row, names)),
  ...viewMeasures(row.sums)
})

const noNames: Names = { currency: null, key: () => null, label: () => noLabel, account: () => null }
const noRow: Omit<UsageRow, "sums"> = { time: 0, ...dimensionsBy(() => ""), label: "" }

const costColumns = ["cost", "currency", "unpriced_requests"]

const costCells = (sums: Sums, { currency }: Names): ReadonlyArray<string> => {
  const { cost, unpriced_requests } = costsOf(sums)
  return [cost, currency ?? "", String(unpriced_requests)]
}

/** The header line. */
export const csvHeader = (by: ReadonlyArray<Grouping>, sums: Sums): string =>
  csvLine([
    ...cellsOf(by, { ...noRow, sums }, noNames).map(([name]) => name),
    ...measureNames,
    ...costColumns,
    "errors",
    ...Object.keys(laterMeasuresOf(sums)),
    ...percentileNames
  ])

/** The line of a row. */
export const csvRow = (by: ReadonlyArray<Grouping>, row: UsageRow, names: Names): string =>
  csvLine([
    ...cellsOf(by, row, names).map(([, text]) => text ?? ""),
    ...row.sums.values.slice(0, measureNames.length).map(String),
    ...costCells(row.sums, names),
    errorsOf(row.sums).map(([code, count]) => `${code}=${count}`).join(";"),
    ...Object.values(laterMeasuresOf(row.sums)).map(String),
    ...Object.values(percentilesOf(row.sums.times)).map((value) => String(value ?? ""))
  ])
