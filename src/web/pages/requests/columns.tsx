/**
 * The columns of the list of requests.
 */
import type { ComponentChildren } from "preact"
import { Badge, outcomeSigns, RequestBadge } from "../../parts/Badge.tsx"
import { countdown, date, number } from "../../parts/format.ts"
import { Sign } from "../../parts/Icon.tsx"
import type { Layout } from "../../parts/layout.ts"
import { Middle } from "../../parts/Name.tsx"
import type { Column } from "../../parts/Table.tsx"
import { When } from "../../parts/Time.tsx"
import { Count, Money, Took } from "../../parts/Values.tsx"
import type { RequestItem } from "../../state/client.ts"
import { clockAtom } from "../../state/live.ts"
import { useAtom } from "../../state/registry.ts"
import { linkTo, type Page, type Query } from "../../state/route.ts"
import { useTexts } from "../../state/texts.ts"
import type { AllTexts } from "../../texts/later.ts"
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

/** The longest error code that leaves room for the status beside it, in characters. */
const mostBesideStatus = 20

/** The outcome: a sign for what went well, the error's whole code, and where there is room the status, for a failure. */
const Outcome = ({ item }: { readonly item: RequestItem }) => {
  const t = useTexts().requests
  const { error, outcome, state, status } = item
  const name = outcome === "open" ? t.states(state) : t.outcomes(outcome)
  if (outcome === "failed" && error !== null) {
    return (
      <span class="outcome-of bad">
        <Sign of="✕" />
        <Pick
          filter="code"
          value={error}
          title={`${name}: ${[error, status].filter((each) => each !== null).join(" ")}`}
        >
          {error}
        </Pick>
        {status !== null && error.length <= mostBesideStatus && <span class="hint">{status}</span>}
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

/** The upstream of what answered; `undefined` while nothing has. */
const upstreamOf = ({ target }: RequestItem): string | undefined => target?.split("/")[0]

/** The one upstream that answered all of these requests; `undefined` when several did. */
export const onlyUpstream = (items: ReadonlyArray<RequestItem>): string | undefined => {
  const [first, ...others] = new Set(items.flatMap((item) => upstreamOf(item) ?? []))
  return others.length === 0 ? first : undefined
}

/** The target that answered, which leads to its upstream, and the account behind it, without the name of that upstream or of the only one. */
const AnsweredBy = ({ item: { account, target }, only }: {
  readonly item: RequestItem
  readonly only: string | undefined
}) => {
  const own = `${target?.split("/")[0] ?? only}/`
  return account === "" && target === undefined ? <>–</> : (
    <span class="answered-by">
      {target !== undefined && <Noun page="upstreams" of={target.split("/")[0]!} text={target} />}
      {account !== "" && (
        <span class={target === undefined ? "" : "hint"}>
          <Noun
            page="accounts"
            of={account}
            text={account.startsWith(own) ? account.slice(own.length) : account}
            title={account}
          />
        </span>
      )}
    </span>
  )
}

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
  /** A request is open beside the list, which keeps what tells one row from another. */
  readonly isBeside: boolean
  readonly layout: Layout
  /** The window has room for all columns of a wide row with their whole names. */
  readonly isRoomy: boolean
  readonly currency: string | undefined
  readonly only: string | undefined
  readonly added: ReadonlyArray<ExtraColumn>
}

const took = (ms: number | null): ComponentChildren => ms === null ? "–" : <Took ms={ms} />

/** Cells that know more than their request. */
interface CellsOf {
  /** The time, which leads to the request. */
  readonly link: (item: RequestItem, content: ComponentChildren) => ComponentChildren
  /** What can be done with it. */
  readonly menu: (item: RequestItem) => ComponentChildren
}

export const columnsOf = (
  { requests: t }: Pick<AllTexts, "requests">,
  { added, currency, days, isBeside, isRoomy, layout, only }: Room,
  { link, menu }: CellsOf
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
  const time: ColumnOf = {
    name: t.time,
    rank: 1,
    sort: "started_at",
    first: "desc",
    width: days ? "10.2rem" : "5.7rem",
    cell: (item) => link(item, <When at={item.started_at} />)
  }
  const outcome: ColumnOf = {
    name: t.outcome,
    rank: 1,
    width: "13.2rem",
    cell: (item) => <Outcome item={item} />
  }
  // In a roomy row their widths are fixed; elsewhere they share what is left.
  const widthOf = (width: string) => layout === "wide" && isRoomy && !isBeside ? { width } : {}
  const model: ColumnOf = { name: t.model, rank: 2, ...widthOf("10.6rem"), cell: (item) => <Model item={item} /> }
  const key: ColumnOf = { name: t.key, rank: 2, ...widthOf("12.4rem"), cell: (item) => <Key item={item} /> }
  const first: ColumnOf = {
    name: t.first,
    rank: 3,
    number: true,
    sort: "first_event_ms",
    width: "5.4rem",
    cell: ({ first_event_ms }) => took(first_event_ms)
  }
  const duration: ColumnOf = {
    name: t.duration,
    rank: 2,
    number: true,
    sort: "duration_ms",
    width: "5.4rem",
    cell: ({ duration_ms, outcome, started_at }) =>
      duration_ms === null && outcome === "open" ? <Running since={started_at} /> : took(duration_ms)
  }
  const cost: ReadonlyArray<ColumnOf> = currency === undefined ? [] : [{
    name: t.costIn(currency),
    rank: 2,
    number: true,
    sort: "cost",
    width: "6.6rem",
    cell: ({ cost }) => cost === null ? "–" : <Money amount={cost} currency={currency} inTable />
  }]
  const tokens: ReadonlyArray<ColumnOf> = [
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
    }
  ]
  const more = added.map((name) => extras[name])
  const actions: ColumnOf = {
    name: t.actions,
    hidden: true,
    width: layout === "wide" && !isBeside ? "3.2rem" : "2.8rem",
    class: "tools",
    cell: menu
  }
  // Names begin with their beginning: where they have no room beside a request, its time goes.
  if (isBeside) return [time, outcome, model, key, ...isRoomy ? [duration] : [], actions]
  if (layout === "cards") {
    return [
      time,
      outcome,
      { ...duration, rank: 1 },
      ...cost.map((each) => ({ ...each, rank: 1 } as const)),
      // What they are is plain without their names.
      { ...model, hidden: true },
      { ...key, hidden: true },
      // To sort by.
      { ...first, rank: 4 },
      ...more,
      actions
    ]
  }
  return [
    time,
    outcome,
    model,
    key,
    { name: t.answeredBy, rank: 3, cell: (item) => <AnsweredBy item={item} only={only} /> },
    ...more,
    first,
    duration,
    ...layout === "wide" && !isRoomy ? [] : tokens,
    ...cost,
    actions
  ]
}

/** Whether some requests are of another day than today. */
export const hasOtherDays = (items: ReadonlyArray<RequestItem>): boolean => {
  const today = date(Date.now())
  return items.some(({ started_at }) => date(started_at) !== today)
}
