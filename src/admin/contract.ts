/**
 * Parts of the contract that several groups have in common, and pages of lists.
 */
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import type { BudgetFacts } from "../accounts/budgets.ts"
import { Spent, SpentCost } from "../domain/schemas.ts"
import { formatTimestamp } from "../domain/time.ts"
import { windowNames } from "../domain/windowNames.ts"

/** Fields of every reply to a change (behaviour "Starting, configuration"). */
export const lasting = {
  /** False when the change ends with the process. */
  config_writable: Schema.Boolean,
  /** True when only a sync to the hosting platform keeps the change. */
  needs_host_sync: Schema.Boolean
}

/** Field of the reply to a change that may add keys. */
export const endedKey = {
  ended: Schema.optionalKey(Schema.String).annotate({
    description: "Id of the generated key of a start without keys, which ends with this change."
  })
}

/** A budget of an account or an upstream, with what is used of it. */
export const BudgetView = Schema.Struct({
  window: Schema.Literals(windowNames).annotate({ description: "UTC; a week begins on Monday." }),
  strict: Schema.Boolean,
  started_at: Schema.String,
  resets_at: Schema.String,
  requests: Spent.annotate({ description: "`used` includes reservations for running tries." }),
  tokens: Spent,
  cost: SpentCost.annotate({ description: "Decimal numbers in the configured currency." })
}).annotate({ identifier: "Budget" })

export const viewBudgets = (budgets: ReadonlyArray<BudgetFacts>): ReadonlyArray<typeof BudgetView.Type> =>
  budgets.map(({ resetsAt, startedAt, ...budget }) => ({
    ...budget,
    started_at: formatTimestamp(startedAt),
    resets_at: formatTimestamp(resetsAt)
  }))

/** A field of a request with the description of the configuration's field that it sets. The configuration checks its value. */
export const like = <S extends Schema.Top>(field: Schema.Top, schema: S): S["Rebuild"] => {
  const description = SchemaAST.resolveDescription(field.ast)
  return description === undefined ? schema : schema.annotate({ description })
}

/** Header of a change that is refused with 409 if the configuration is no longer the `revision` of a reply. */
export const revised = { headers: { "if-match": Schema.optionalKey(Schema.String) } }

/** A flag of a query: `true` or `false`; empty counts as absent. */
export const Switch = Schema.Literals(["true", "false", ""])

/** A number of a query; a form sends an empty text for a field that was left empty. */
export const PageNumber = Schema.Union([Schema.Literal(""), Schema.FiniteFromString])

/** Query of a list with pages. */
export const pageQuery = {
  page: Schema.optionalKey(PageNumber),
  page_size: Schema.optionalKey(PageNumber),
  q: Schema.optionalKey(Schema.String)
}

/** What descriptions say of `sort` and `order`. */
export const aboutSort =
  "`sort` is in descending order (`order` asc: ascending); unknown values come last, and equal ones stay in the order of the list."

export const orders = ["asc", "desc"] as const

/** Query of a list that can be sorted; empty counts as absent. */
export const sortQuery = <const Names extends ReadonlyArray<string>>(names: Names) => ({
  sort: Schema.optionalKey(Schema.Literals([...names, ""])),
  order: Schema.optionalKey(Schema.Literals([...orders, ""]))
})

/** A value that a list is sorted by; `null` and `undefined` come last in either order. */
export type SortValue = string | number | bigint | boolean | null | undefined

/** The items by a value, the largest first unless `order` says otherwise; equal ones stay in the order that they have. */
export const sortedBy = <A>(
  items: ReadonlyArray<A>,
  valueOf: (item: A) => SortValue,
  order: (typeof orders)[number] | "" | undefined
): ReadonlyArray<A> => {
  const sign = order === "asc" ? 1 : -1
  return items
    .map((item) => ({ item, value: valueOf(item) ?? undefined }))
    .sort((a, b) =>
      a.value === b.value
        ? 0
        : a.value === undefined
        ? 1
        : b.value === undefined
        ? -1
        : a.value < b.value
        ? -sign
        : sign
    )
    .map(({ item }) => item)
}

/** Fields of a page; `total` counts the items of all pages. */
export const pageFields = {
  total: Schema.Int,
  page: Schema.Int,
  page_size: Schema.Int,
  total_pages: Schema.Int
}

/** Reply field with the nodes that did not answer; absent unless several nodes share a store. */
export const missingNodes = { nodes_missing: Schema.optionalKey(Schema.Array(Schema.String)) }

/** A number of a query as a whole number from 1 to `most`; absent or empty: `fallback`. */
export const clamp = (value: number | "" | undefined, fallback: number, most: number): number =>
  value === undefined || value === "" ? fallback : Math.min(most, Math.max(1, Math.trunc(value)))

/** The page fields of a query. */
export interface PageQuery {
  readonly page?: number | "" | undefined
  readonly page_size?: number | "" | undefined
  readonly q?: string | undefined
}

/** The text that a list is filtered by, in lower case; empty: all items. */
export const searchText = ({ q = "" }: PageQuery): string => q.trim().toLowerCase()

/** A page of a list, with the page fields of the reply; `total` counts the items of all pages. */
export const pageOf = <A>(all: ReadonlyArray<A>, query: PageQuery, sizes: { fallback: number; most: number }) => {
  const page = clamp(query.page, 1, Number.MAX_SAFE_INTEGER)
  const page_size = clamp(query.page_size, sizes.fallback, sizes.most)
  return {
    items: all.slice((page - 1) * page_size, page * page_size),
    total: all.length,
    page,
    page_size,
    total_pages: Math.max(1, Math.ceil(all.length / page_size))
  }
}
