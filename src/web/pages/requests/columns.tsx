/**
 * The columns of the list of requests. Their widths are fixed, and a narrow list has fewer of them.
 */
import type { ComponentChildren } from "preact"
import { RequestBadge } from "../../parts/Badge.tsx"
import { CopyButton } from "../../parts/Copy.tsx"
import { countdown, date, duration, number } from "../../parts/format.ts"
import { When } from "../../parts/Time.tsx"
import type { RequestItem } from "../../state/client.ts"
import { clockAtom } from "../../state/live.ts"
import { useTexts } from "../../state/preferences.ts"
import { useAtom } from "../../state/registry.ts"
import { linkTo } from "../../state/route.ts"
import type { Texts } from "../../texts/en.ts"
import { exactly, upstreamOf } from "./filter.ts"
import { narrow } from "./Filters.tsx"

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
    onClick={() => narrow({ [filter]: exactly(filter, value) })}
  >
    {children}
  </button>
)

const PickOr = ({ filter, value }: { readonly filter: string; readonly value: string | null | undefined }) =>
  value ? <Pick filter={filter} value={value}>{value}</Pick> : <>–</>

/** Keys that are no entries of the list of keys. */
const isListedKey = (key: string): boolean => key !== "direct" && key !== "embedded"

const Key = ({ item: { key, key_name } }: { readonly item: RequestItem }) => {
  const t = useTexts().requests
  const name = key_name ?? t.keyNames(key)
  return isListedKey(key)
    ? (
      <span class="with-copy">
        <a href={linkTo("keys", key)} title={key} tabIndex={-1}>{name}</a>
        <CopyButton name={t.keyId(name)} text={key} />
      </span>
    )
    : <Pick filter="key" value={key}>{name}</Pick>
}

/** The outcome, and the error's code or else the status. */
const Outcome = ({ hasHint, item }: { readonly item: RequestItem; readonly hasHint: boolean }) => {
  const t = useTexts().requests
  const { error, outcome, state, status } = item
  const name = outcome === "open" ? t.states(state) : t.outcomes(outcome)
  return (
    <span class="outcome-of">
      <Pick filter="outcome" value={outcome} title={name}>
        <RequestBadge item={item} />
      </Pick>
      {hasHint && (error !== null
        ? (
          <Pick
            class="hint"
            filter="code"
            value={error}
            title={[status, error].filter((each) => each !== null).join(" ")}
          >
            {error}
          </Pick>
        )
        : outcome !== "cancelled" && status !== null && <span class="hint">{status}</span>)}
    </span>
  )
}

/** The time since a request began, counting. */
const Running = ({ since }: { readonly since: number }) => (
  <span class="hint">{countdown((useAtom(clockAtom) - since) / 1000)}</span>
)

interface ColumnOf {
  readonly name: string
  readonly number?: boolean
  readonly width?: string
  /** Names the row. */
  readonly isName?: boolean
  readonly cell: (item: RequestItem) => ComponentChildren
}

/** What the columns depend on. */
export interface Room {
  /** The list's width in pixels. */
  readonly width: number
  /** Some requests are of another day. */
  readonly days: boolean
  /** The gateway has several upstreams. */
  readonly upstreams: boolean
}

/** The least width of a list whose rows have room for their ids. */
export const idsFrom = 480

export const columnsOf = (
  { common: c, requests: t }: Pick<Texts, "common" | "requests">,
  { days, upstreams, width }: Room,
  link: (item: RequestItem, content: ComponentChildren) => ComponentChildren
): ReadonlyArray<ColumnOf> => {
  const hasIds = width >= idsFrom
  const columns: ReadonlyArray<ColumnOf & { readonly from: number }> = [
    {
      from: 0,
      name: t.time,
      isName: !hasIds,
      width: days ? "10.2rem" : "6.1rem",
      cell: (item) =>
        hasIds ? <When at={item.started_at} /> : link(
          item,
          (
            <>
              <When at={item.started_at} />
              <span class="sr-only">{` ${item.request_id}`}</span>
            </>
          )
        )
    },
    {
      from: idsFrom,
      name: c.request,
      isName: true,
      width: "6.6rem",
      cell: (item) => (
        <span class="with-copy">
          {link(item, item.request_id)}
          <CopyButton name={item.request_id} text={item.request_id} />
        </span>
      )
    },
    {
      from: 0,
      name: t.outcome,
      width: hasIds ? "13.4rem" : "8rem",
      cell: (item) => <Outcome item={item} hasHint={hasIds} />
    },
    { from: 0, name: t.model, cell: ({ model }) => <PickOr filter="model" value={model} /> },
    { from: idsFrom, name: t.key, cell: (item) => <Key item={item} /> },
    { from: 800, name: t.account, cell: ({ account }) => <PickOr filter="account" value={account} /> },
    ...(upstreams
      ? [{
        from: 960,
        name: t.upstream,
        cell: (item: RequestItem) => {
          const upstream = upstreamOf(item)
          return upstream === undefined
            ? "–"
            : <Pick filter="upstream" value={upstream} title={item.target ?? upstream}>{item.target ?? upstream}</Pick>
        }
      }]
      : []),
    {
      from: 1100,
      name: t.style,
      width: "6.6rem",
      cell: ({ style }) => <Pick filter="style" value={style} title={t.styles(style)}>{t.shortStyles(style)}</Pick>
    },
    {
      from: 1040,
      name: t.first,
      number: true,
      width: "4.9rem",
      cell: ({ first_event_ms }) => first_event_ms === null ? "–" : duration(first_event_ms)
    },
    {
      from: 0,
      name: t.duration,
      number: true,
      width: "4.9rem",
      cell: ({ duration_ms, outcome, started_at }) =>
        duration_ms !== null ? duration(duration_ms) : outcome === "open" ? <Running since={started_at} /> : "–"
    },
    {
      from: 700,
      name: t.tokens,
      number: true,
      width: "7.2rem",
      cell: ({ usage }) => usage === null ? "–" : `${number(usage.prompt_tokens)} + ${number(usage.completion_tokens)}`
    }
  ]
  return columns.filter(({ from }) => width >= from)
}

/** Whether some requests are of another day than today. */
export const hasOtherDays = (items: ReadonlyArray<RequestItem>): boolean => {
  const today = date(Date.now())
  return items.some(({ started_at }) => date(started_at) !== today)
}
