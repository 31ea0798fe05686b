/**
 * What is chosen on the page of usage, in its address.
 */
import { useMemo } from "preact/hooks"
import { timeZone } from "../../parts/format.ts"
import { type Order, useOrder } from "../../parts/Table.tsx"
import { useCurrency } from "../../state/currency.ts"
import { zoneAtom } from "../../state/preferences.ts"
import { useAtom } from "../../state/registry.ts"
import { choose, type Query, useQuery } from "../../state/route.ts"
import { useSeveralUpstreams } from "../../state/upstreams.ts"
import { endOfHour, isoHour } from "../nouns/hours.ts"
import { dimensions, type Grouping, type MeasureName, measureNames, type SortName, sortNames, sortOf } from "./rows.ts"

export const hour = 3600 * 1000
export const ranges = { day: 24, week: 7 * 24, month: 30 * 24, quarter: 90 * 24, year: 365 * 24 } as const
export type Range = keyof typeof ranges

/** The longest range whose bars are hours. */
const longestByHours = 8 * 24 * hour

/** How often a range up to now is read again while it is shown. */
export const rereadAfter = (length: number): number => length <= 24 * hour ? 5_000 : 60_000

const oneOf = <A extends string>(all: ReadonlyArray<A>, text: string | undefined): A | undefined =>
  all.find((each) => each === text)

type TableOrder = Order<SortName>

/** The order of rows that begin with a group: the one that was asked for, else by what the chart shows; times have an order of their own. */
export const orderFor = (asked: TableOrder | undefined, by: Grouping, measure: MeasureName): TableOrder | undefined =>
  asked ?? (by === "hour" || by === "day" ? undefined : { sort: sortOf(measure), order: "desc" })

/** What is chosen on the page, from its address. */
export const useChoice = () => {
  const query = useQuery()
  const order = useOrder(sortNames)
  const several = useSeveralUpstreams().length > 0
  const shownDimensions = several ? dimensions : dimensions.filter((name) => name !== "upstream" && name !== "target")
  // The API counts in hours: the same hour gives the same query.
  const end = endOfHour(Date.now())
  const hasCost = useCurrency() !== undefined
  const zone = (useAtom(zoneAtom), timeZone())
  return useMemo(() => {
    const range = oneOf(Object.keys(ranges) as ReadonlyArray<Range>, query["range"]) ?? "day"
    const [from, to] = [Date.parse(query["from"] ?? ""), Date.parse(query["to"] ?? "")]
    const isCustom = from < to
    const times = isCustom ? { from, to } : { from: end - ranges[range] * hour, to: end }
    const only = Object.fromEntries(dimensions.flatMap((name) => query[name] ? [[name, query[name]]] : [])) as Query
    // What is filtered by one value is grouped by the next thing.
    const fallback = (["model", ...shownDimensions] as const).find((name) => only[name] === undefined)
    const by: Grouping = oneOf([...shownDimensions, "hour", "day"], query["by"]) ?? fallback ?? "model"
    const measure = oneOf(measureNames, query["measure"]) ?? (hasCost ? "cost" : "requests")
    const isTimed = by === "hour" || by === "day"
    const second = oneOf(shownDimensions, query["second"])
    return {
      ...times,
      isCustom,
      range,
      zone,
      unit: times.to - times.from <= longestByHours ? "hour" as const : "day" as const,
      by,
      second: second === by ? undefined : second,
      // The bars of prompts have parts of their own.
      split: query["measure"] === "cache" || query["split"] === "none"
        ? undefined
        : oneOf(shownDimensions, query["split"]) ?? (isTimed ? fallback : by),
      measure,
      only,
      asked: order,
      order: orderFor(order, by, measure),
      page: Math.max(1, Math.trunc(Number(query["page"])) || 1),
      shownDimensions
    }
  }, [query, end, several, zone, hasCost])
}

export type Choice = ReturnType<typeof useChoice>

/** Changes the choice, and shows the first page. */
export const pick = (changes: Query): void => choose({ page: "", ...changes })

/** The query of a choice, with its groups. */
export const queryOf = ({ from, only, to, zone }: Choice, by: ReadonlyArray<Grouping | undefined>, limit: number) => ({
  ...only,
  zone,
  from: isoHour(from),
  to: isoHour(to),
  by: by.filter((name) => name !== undefined).join(","),
  limit: String(limit)
})
