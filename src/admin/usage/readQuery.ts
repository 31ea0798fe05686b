/**
 * Reads a usage query from a query string.
 */
import * as Result from "effect/Result"
import { type GatewayError, invalidRequest, shortenName } from "../../domain/GatewayError.ts"
import { given } from "../../domain/givenText.ts"
import { isKeyId, noLabel } from "../../domain/identity.ts"
import { directKey, embeddedKey, none } from "../../domain/usageNames.ts"
import { daysBeforeAt } from "../../usage/retention.ts"
import { type DimensionName, dimensionNames } from "../../usage/UsageEntry.ts"
import { type Grouping, groupings, namesFor, type RowOrder, type UsageQuery } from "../../usage/UsageQuery.ts"
import { dayLength, dayOf, hourLength, hourOf } from "../../usage/windows.ts"
import { lastTime, readTime, wrongTime } from "../queryTime.ts"
import type { usageSorts } from "./Api.ts"
import { type NamedIds, sortValueOf } from "./rows.ts"

/** The query's texts, by name. */
export type QueryTexts =
  & {
    readonly [Name in DimensionName | "label" | "from" | "to" | "by" | "limit" | "zone"]?: string | undefined
  }
  & {
    readonly sort?: (typeof usageSorts)[number] | "" | undefined
    readonly order?: RowOrder["order"] | "" | undefined
  }

/** The largest and the default number of rows. */
export interface RowLimits {
  readonly most: number
  readonly fallback: number
}

/** Keys of usage that are no keys of the configuration. */
const fixedKeys: ReadonlySet<string> = new Set([directKey, embeddedKey, none])

const listOf = (text: string): ReadonlyArray<string> => text.split(",").map((item) => item.trim())

const isGrouping = (name: string): name is Grouping => groupings.some((grouping) => grouping === name)

/** The days of a time zone; `undefined` if no zone has the name. It remembers the hours that it was asked for: those of a query. */
const daysIn = (zone: string): ((hour: number) => number) | undefined => {
  try {
    const days = new Intl.DateTimeFormat("en", { timeZone: zone, year: "numeric", month: "numeric", day: "numeric" })
    const known = new Map<number, number>()
    return (hour) => {
      let day = known.get(hour)
      if (day === undefined) {
        const parts = days.formatToParts(hour)
        const part = (name: "year" | "month" | "day") => Number(parts.find(({ type }) => type === name)?.value)
        day = Date.UTC(part("year"), part("month") - 1, part("day"))
        known.set(hour, day)
      }
      return day
    }
  } catch {
    return undefined
  }
}

/** A query with the zone of its days, and the time before which days are in UTC whatever the zone. */
export interface ZonedQuery extends UsageQuery {
  readonly zone: string
  readonly utcDaysBefore: number | null
}

const isAccountHash = (text: string): boolean => /^[0-9a-f]{12}$/.test(text)

/**
 * What a query is restricted to, by ids: keys are given by name or id, and accounts by identifier or hash, each by one that may have commas or
 * by several between commas. An id may be one of the past. The error of a name that nothing has.
 */
export const withIds = (
  texts: Pick<QueryTexts, "account" | "key">,
  only: UsageQuery["only"],
  { named }: NamedIds
): Result.Result<UsageQuery["only"], GatewayError> => {
  const found: { [Name in DimensionName]?: ReadonlySet<string> | undefined } = { ...only }
  for (
    const [name, isId, what] of [
      ["key", (text: string) => isKeyId(text) || fixedKeys.has(text), "API key has the name or id"],
      ["account", (text: string) => isAccountHash(text) || text === none, "account has the identifier or hash"]
    ] as const
  ) {
    const whole = given(texts[name])
    if (whole === undefined) continue
    const ids = new Set<string>(named[name](whole))
    for (const text of ids.size > 0 ? [] : listOf(whole)) {
      const of = named[name](text)
      if (of.length === 0 && !isId(text)) {
        return Result.fail(invalidRequest(`${name}: no ${what} ${JSON.stringify(shortenName(text))}`, name))
      }
      for (const id of of.length > 0 ? of : [text]) ids.add(id)
    }
    found[name] = ids
  }
  return Result.succeed(found)
}

/** The labels that a query is restricted to: one that may have commas, or several between commas. The error of a label that no key has. */
export const labelsOf = (
  texts: Pick<QueryTexts, "label">,
  { labels }: NamedIds
): Result.Result<ReadonlySet<string> | undefined, GatewayError> => {
  const whole = given(texts.label)
  if (whole === undefined) return Result.succeed(undefined)
  const known = labels()
  const asked = known.has(whole) ? [whole] : listOf(whole)
  const unknown = asked.find((label) => label !== noLabel && !known.has(label))
  return unknown === undefined
    ? Result.succeed(new Set(asked))
    : Result.fail(invalidRequest(`label: no API key has the label ${JSON.stringify(shortenName(unknown))}`, "label"))
}

/** Reads the query; `now` in milliseconds. */
export const readQuery = (
  texts: QueryTexts,
  now: number,
  rows: RowLimits
): Result.Result<ZonedQuery, GatewayError> => {
  const [fromText, toText, byText, limitText] = [texts.from, texts.to, texts.by, texts.limit].map(given)
  const until = toText === undefined ? now : readTime(toText)
  if (until === undefined) return Result.fail(wrongTime("to"))
  const to = Math.min(hourOf(until + hourLength - 1), hourOf(lastTime))
  const since = fromText === undefined ? to - dayLength : readTime(fromText)
  if (since === undefined) return Result.fail(wrongTime("from"))
  const from = hourOf(since)
  if (from >= to) return Result.fail(invalidRequest("from must be before to", "from"))

  const by: Array<Grouping> = []
  for (const name of byText === undefined ? [] : listOf(byText)) {
    if (!isGrouping(name)) return Result.fail(invalidRequest(`by must be of ${groupings.join(", ")}`, "by"))
    if (by.includes(name)) return Result.fail(invalidRequest(`by names ${name} twice`, "by"))
    by.push(name)
  }

  const limit = limitText === undefined ? rows.fallback : Number(limitText)
  if (!Number.isInteger(limit) || limit < 1 || limit > rows.most) {
    return Result.fail(invalidRequest(`limit must be between 1 and ${rows.most}`, "limit"))
  }
  const only: { [Name in DimensionName]?: ReadonlySet<string> } = {}
  for (const name of dimensionNames) {
    const text = given(texts[name])
    if (text !== undefined) only[name] = new Set(listOf(text))
  }
  const kept = namesFor({ by, only })
  for (const name of dimensionNames) {
    if (kept.includes(name)) continue
    const field = by.includes(name) ? "by" : only[name] === undefined ? undefined : name
    if (field !== undefined) {
      return Result.fail(
        invalidRequest(`session, agent and parent go with key, label, app, hour and day, and not with ${name}`, field)
      )
    }
  }
  const zone = given(texts.zone) ?? "UTC"
  const dayIn = daysIn(zone)
  if (dayIn === undefined) {
    return Result.fail(invalidRequest("zone must be the name of a time zone, such as Europe/Berlin", "zone"))
  }
  const utcDaysBefore = zone === "UTC" ? null : daysBeforeAt(now)
  return Result.succeed({
    from,
    to,
    by,
    only,
    limit,
    zone,
    utcDaysBefore,
    ...texts.sort ? { sort: { valueOf: sortValueOf(texts.sort), order: texts.order || "desc" } } : {},
    ...utcDaysBefore === null
      ? {}
      : { dayOf: (hour: number) => hour < utcDaysBefore ? dayOf(hour) : dayIn(hour) }
  })
}
