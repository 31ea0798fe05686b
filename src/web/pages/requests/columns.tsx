/**
 * The columns of the list of requests.
 */
import type { ComponentChildren } from "preact"
import { Badge, outcomeSigns, RequestBadge } from "../../parts/Badge.tsx"
import { CopyButton } from "../../parts/Copy.tsx"
import { countdown, date, number } from "../../parts/format.ts"
import { Middle } from "../../parts/Name.tsx"
import type { Column } from "../../parts/Table.tsx"
import { When } from "../../parts/Time.tsx"
import { Count, Money, Took } from "../../parts/Values.tsx"
import type { RequestItem } from "../../state/client.ts"
import { clockAtom } from "../../state/live.ts"
import { useTexts } from "../../state/preferences.ts"
import { useAtom } from "../../state/registry.ts"
import { linkTo, type Page, type Query } from "../../state/route.ts"
import type { Texts } from "../../texts/en.ts"
import { exactly } from "./filter.ts"
import { narrow } from "./Filters.tsx"
import { rateOf } from "./rate.ts"

/** A value that filters the list by itself. The chips do so by keyboard. */
const Pick = ({ children, class: kind = "", filter, title, value }: {
  readonly filter: string
  readonly value: string
  readonly title?: string
  readonly class?: string
  readonly children: ComponentChildren
}) => (
  <button
    type="button"
    class={`pick-value ${kind}`}
    tabIndex={-1}
    title={title ?? value}
    aria-label={title ?? value}
    onClick={() => narrow({ [filter]: exactly(filter, value) })}
  >
    {children}
  </button>
)

/** A name that leads to its page. The chips filter by it. */
const Noun = ({ of, page, text = of, title = text }: {
  readonly page: Page
  readonly of: string
  readonly text?: string
  readonly title?: string
}) => (
  <a href={linkTo(page, of)} title={title} aria-label={text} tabIndex={-1}>
    <Middle text={text} />
  </a>
)

/** Keys that are no entries of the list of keys. */
const isListedKey = (key: string): boolean => key !== "direct" && key !== "embedded"

const Key = ({ item: { key, key_name } }: { readonly item: RequestItem }) => {
  const t = useTexts().requests
  const name = key_name ?? t.keyNames(key)
  return isListedKey(key)
    ? (
      <span class="with-copy">
        <Noun page="keys" of={key} text={name} title={key} />
        <CopyButton name={t.keyId(name)} text={key} />
      </span>
    )
    : (
      <Pick filter="key" value={key} title={name}>
        <Middle text={name} />
      </Pick>
    )
}

/** The model, which leads to its page; a name that no model has filters the list. */
const Model = ({ item: { model, native_model } }: { readonly item: RequestItem }) => {
  if (model === null) return <>–</>
  return native_model === null
    ? (
      <Pick filter="model" value={model}>
        <Middle text={model} />
      </Pick>
    )
    : (
      <span class="with-copy">
        <Noun page="models" of={model} />
      </span>
    )
}

/** The outcome: a sign for what went well, the error's code and the status for a failure. */
const Outcome = ({ item }: { readonly item: RequestItem }) => {
  const t = useTexts().requests
  const { error, outcome, state, status } = item
  const name = outcome === "open" ? t.states(state) : t.outcomes(outcome)
  if (outcome === "failed" && error !== null) {
    return (
      <span class="outcome-of bad">
        <span aria-hidden="true">✕</span>
        <Pick
          filter="code"
          value={error}
          title={`${name}: ${[error, status].filter((each) => each !== null).join(" ")}`}
        >
          {error}
        </Pick>
        {status !== null && <span class="hint">{status}</span>}
      </span>
    )
  }
  return (
    <Pick filter="outcome" value={outcome} title={name}>
      {outcome === "ok"
        ? <Badge {...outcomeSigns.ok} text={<span class="sr-only">{name}</span>} />
        : <RequestBadge item={item} />}
    </Pick>
  )
}

/** The target that answered, which leads to its upstream, and the account behind it. */
const AnsweredBy = ({ item: { account, target } }: { readonly item: RequestItem }) =>
  account === "" && target === undefined ? <>–</> : (
    <span class="answered-by">
      {target !== undefined && <Noun page="upstreams" of={target.split("/")[0]!} text={target} />}
      {account !== "" && (
        <span class={target === undefined ? "" : "hint"}>
          <Noun page="accounts" of={account} />
        </span>
      )}
    </span>
  )

/** The time since a request began, counting. */
const Running = ({ since }: { readonly since: number }) => (
  <span class="hint">{countdown((useAtom(clockAtom) - since) / 1000)}</span>
)

interface ColumnOf extends Column {
  readonly cell: (item: RequestItem) => ComponentChildren
}

/** Columns that the menu of columns adds. */
export const extraColumns = ["style", "finish", "tries", "rate", "wait", "total"] as const
export type ExtraColumn = (typeof extraColumns)[number]

/** The added columns of an address. */
export const addedColumns = ({ columns = "" }: Query): ReadonlyArray<ExtraColumn> => {
  const named = new Set(columns.split(","))
  return extraColumns.filter((name) => named.has(name))
}

/** What the list can be sorted by. */
export const sorts = ["started_at", "duration_ms", "first_event_ms", "cost", "total_tokens"] as const

/** What the columns depend on. */
export interface Room {
  /** Some requests are of another day. */
  readonly days: boolean
  /** A request is open beside the list, and has its cost. */
  readonly isBeside: boolean
  /** Every column stands in the rows. */
  readonly isWide: boolean
  readonly currency: string | undefined
  readonly added: ReadonlyArray<ExtraColumn>
}

const took = (ms: number | null): ComponentChildren => ms === null ? "–" : <Took ms={ms} />

export const columnsOf = (
  { requests: t }: Pick<Texts, "requests">,
  { added, currency, days, isBeside, isWide }: Room,
  link: (item: RequestItem, content: ComponentChildren) => ComponentChildren
): ReadonlyArray<ColumnOf> => {
  const extras: Readonly<Record<ExtraColumn, ColumnOf>> = {
    style: {
      name: t.extras.style,
      rank: 3,
      width: "6.6rem",
      cell: ({ style }) => <Pick filter="style" value={style} title={t.styles(style)}>{t.shortStyles(style)}</Pick>
    },
    finish: { name: t.extras.finish, rank: 3, width: "6rem", cell: ({ finish }) => finish ?? "–" },
    tries: { name: t.extras.tries, rank: 3, number: true, width: "5.2rem", cell: ({ attempts }) => number(attempts) },
    rate: {
      name: t.extras.rate,
      rank: 3,
      number: true,
      width: "5.5rem",
      cell: (item) => {
        const rate = rateOf(item)
        return rate === undefined ? "–" : <Count value={rate} />
      }
    },
    wait: { name: t.extras.wait, rank: 3, number: true, width: "4.9rem", cell: ({ queued_ms }) => took(queued_ms) },
    total: {
      name: t.extras.total,
      rank: 3,
      number: true,
      sort: "total_tokens",
      width: "5.5rem",
      cell: ({ usage }) => usage === null ? "–" : <Count value={usage.prompt_tokens + usage.completion_tokens} />
    }
  }
  return [
    {
      name: t.time,
      rank: 1,
      sort: "started_at",
      first: "desc",
      width: days ? "10.2rem" : "5.7rem",
      cell: (item) => link(item, <When at={item.started_at} />)
    },
    { name: t.outcome, rank: 1, width: "11.5rem", cell: (item) => <Outcome item={item} /> },
    { name: t.model, rank: 2, ...isWide ? { width: "11.2rem" } : {}, cell: (item) => <Model item={item} /> },
    { name: t.key, rank: 2, ...isWide ? { width: "12.6rem" } : {}, cell: (item) => <Key item={item} /> },
    { name: t.answeredBy, rank: 3, cell: (item) => <AnsweredBy item={item} /> },
    ...added.map((name) => extras[name]),
    {
      name: t.first,
      rank: 3,
      number: true,
      sort: "first_event_ms",
      width: "4.9rem",
      cell: ({ first_event_ms }) => took(first_event_ms)
    },
    {
      name: t.duration,
      rank: 2,
      number: true,
      sort: "duration_ms",
      width: "5.4rem",
      cell: ({ duration_ms, outcome, started_at }) =>
        duration_ms === null && outcome === "open" ? <Running since={started_at} /> : took(duration_ms)
    },
    {
      name: t.in,
      rank: 3,
      number: true,
      width: "4.2rem",
      cell: ({ usage }) => usage === null ? "–" : <Count value={usage.prompt_tokens} />
    },
    {
      name: t.out,
      rank: 3,
      number: true,
      width: "4.2rem",
      cell: ({ usage }) => usage === null ? "–" : <Count value={usage.completion_tokens} />
    },
    ...currency === undefined || isBeside ? [] : [
      {
        name: t.costIn(currency),
        rank: 2,
        number: true,
        sort: "cost",
        width: "7.2rem",
        cell: ({ cost }: RequestItem) => cost === null ? "–" : <Money amount={cost} currency={currency} inTable />
      } as const
    ]
  ]
}

/** Whether some requests are of another day than today. */
export const hasOtherDays = (items: ReadonlyArray<RequestItem>): boolean => {
  const today = date(Date.now())
  return items.some(({ started_at }) => date(started_at) !== today)
}
