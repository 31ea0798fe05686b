/**
 * Keys as the admin API shows them: ids and a preview, never the key.
 */
import type { KeyEntry } from "../../config/entries/keyIndex.ts"
import type { GatewayConfig } from "../../config/GatewayConfig.ts"
import type { KeyRecord } from "../../config/keyRecords.ts"
import { formatDecimal } from "../../domain/decimal.ts"
import { keyPreview } from "../../domain/identity.ts"
import { formatTimestamp } from "../../domain/time.ts"
import { keyStatusOf, type KeyUsage } from "../../usage/KeyLimits.ts"
import { limitedWindows } from "../../usage/limitedWindows.ts"
import type { SortValue } from "../contract.ts"
import type { KeyItem, keySorts, KeyWindowView } from "./Api.ts"

const timeOf = (millis: number | undefined): string | null => millis === undefined ? null : formatTimestamp(millis)

const windowsOf = (record: KeyRecord | undefined, usage: KeyUsage): Array<typeof KeyWindowView.Type> =>
  limitedWindows(record, usage).map(({ fallback: _, resetsAt, startedAt, strict: __, ...limit }) => ({
    ...limit,
    started_at: formatTimestamp(startedAt),
    resets_at: formatTimestamp(resetsAt)
  }))

/** A key with its record and usage; `now` in milliseconds. */
export const viewKey = (
  config: GatewayConfig,
  usage: KeyUsage,
  { id, key }: KeyEntry,
  now: number
): typeof KeyItem.Type => {
  const record = config.key_records.get(id)
  const today = usage.windows.find(({ window }) => window === "day")
  return {
    id,
    preview: keyPreview(key),
    state: keyStatusOf(record, now),
    ...(key === config.generated_key ? { generated: true } : {}),
    name: record?.name ?? null,
    label: record?.label ?? null,
    note: record?.note ?? null,
    disabled: record?.disabled ?? false,
    expires_at: timeOf(record?.expires_at),
    models: record?.models ?? null,
    max_inflight: record?.max_inflight ?? null,
    class: record?.class ?? null,
    limits: (record?.limits ?? []).map((
      { cost, fallback = null, requests = null, strict = false, tokens = null, window }
    ) => ({
      window,
      requests,
      tokens,
      cost: cost === undefined ? null : formatDecimal(cost),
      strict,
      fallback
    })),
    created_at: record?.created_at ?? null,
    usage: {
      in_flight: usage.inFlight,
      max_inflight: usage.maxInFlight ?? null,
      last_used_at: timeOf(usage.lastUsedAt),
      requests_today: today?.requests ?? 0,
      cost_today: formatDecimal(today?.cost ?? 0n),
      windows: windowsOf(record, usage)
    }
  }
}

/** Whether `text`, in lower case, is part of the key's id, name, label or note. */
export const matches = (config: GatewayConfig, id: string, text: string): boolean => {
  const record = config.key_records.get(id)
  return [id, record?.name, record?.label, record?.note].some((each) => each?.toLowerCase().includes(text) === true)
}

type Item = typeof KeyItem.Type

/** The largest used share of the limits of a key; `null` without any. */
const limitShare = ({ usage: { windows } }: Item): number | null => {
  const shares = windows.flatMap(({ cost, requests, tokens }) =>
    [cost, requests, tokens].flatMap((spent) => spent === null ? [] : [share(Number(spent.used), Number(spent.limit))])
  )
  return shares.length === 0 ? null : Math.max(...shares)
}

const share = (used: number, limit: number): number => limit === 0 ? 1 : used / limit

/** The values that the list is sorted by. Times are texts of one form. */
export const keyValues: { readonly [Name in (typeof keySorts)[number]]: (item: Item) => SortValue } = {
  id: ({ id }) => id,
  name: ({ name }) => name,
  label: ({ label }) => label,
  note: ({ note }) => note,
  state: ({ state }) => state,
  class: (item) => item.class,
  created_at: ({ created_at }) => created_at,
  expires_at: ({ expires_at }) => expires_at,
  in_flight: ({ usage }) => usage.in_flight,
  max_inflight: ({ usage }) => usage.max_inflight,
  last_used_at: ({ usage }) => usage.last_used_at,
  requests_today: ({ usage }) => usage.requests_today,
  cost_today: ({ usage }) => Number(usage.cost_today),
  limit_share: limitShare
}
