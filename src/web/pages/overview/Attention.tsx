/**
 * What needs attention: upstreams and accounts that do not serve, keys near a limit, and the errors of the last hour.
 */
import * as Option from "effect/Option"
import * as AsyncResult from "effect/reactivity/AsyncResult"
import type { ComponentChildren } from "preact"
import { useRef } from "preact/hooks"
import { AccountBadge, Badge, stateOf } from "../../parts/Badge.tsx"
import { number } from "../../parts/format.ts"
import { Section } from "../../parts/Heading.tsx"
import { Ago } from "../../parts/Time.tsx"
import { UpstreamBadge } from "../../parts/UpstreamBadge.tsx"
import { Admin } from "../../state/client.ts"
import { poolAtom, useReread } from "../../state/live.ts"
import { accountName } from "../../state/names.ts"
import { useTexts } from "../../state/preferences.ts"
import { useAtom } from "../../state/registry.ts"
import { linkTo } from "../../state/route.ts"
import { upstreamsAtom, useCurrentUpstreams } from "../../state/upstreams.ts"
import { fullest } from "../keys/limits.ts"
import { knownAtom } from "./accounts.ts"
import { hourAtom, lastHour } from "./Minutes.tsx"
import { linkToAccount } from "./Pool.tsx"

/** Keys whose limits are looked at. */
const keysRead = 500
const keysAtom = Admin.query("admin-keys", "list", {
  query: { page: 1, page_size: keysRead },
  reactivityKeys: ["keys"]
})

/** A key from this share of a limit on needs attention. */
const nearLimit = 0.8

/** The most rows of one kind. */
const mostOfKind = 8

/** The pages that the rows lead to. */
type Page = "upstreams" | "accounts" | "keys" | "requests" | "settings"

interface Row {
  readonly id: string
  readonly name: string
  readonly link: string
  readonly what: ComponentChildren
}

interface Group {
  readonly page: Page
  readonly rows: ReadonlyArray<Row>
  /** How many there are beside the rows, and where they are. */
  readonly more: number
  readonly moreLink: string
}

const valueOf = <A, E>(result: AsyncResult.AsyncResult<A, E>): A | undefined =>
  Option.getOrUndefined(AsyncResult.value(result))

const useUpstreamGroup = (): Group => {
  useCurrentUpstreams()
  const upstreams = valueOf(useAtom(upstreamsAtom))?.upstreams ?? []
  const found = upstreams.filter(({ accounts, findings, state }) =>
    state === "cooled" || (state === "ready" && (accounts.ready === 0 || findings.length > 0))
  )
  return {
    page: "upstreams",
    more: Math.max(0, found.length - mostOfKind),
    moreLink: linkTo("upstreams"),
    rows: found.slice(0, mostOfKind).map((item) => ({
      id: item.name,
      name: item.name,
      link: linkTo("upstreams"),
      what: <UpstreamBadge item={item} />
    }))
  }
}

/** Worst first, then by name, so that a row keeps its place. */
const severity = { out: 0, failed: 1, cooling: 2, ready: 3, disabled: 3 } as const

const useAccountGroup = (): Group => {
  const known = useAtom(knownAtom)
  const pool = useAtom(poolAtom)
  const found = known.items.filter(({ item }) => severity[stateOf(item)] < severity.ready)
    .map((each) => ({ ...each, name: accountName(each.item) }))
    .sort((a, b) => severity[stateOf(a.item)] - severity[stateOf(b.item)] || (a.name < b.name ? -1 : 1))
  const all = Math.max(found.length, (pool?.out ?? 0) + (pool?.cooling ?? 0) + (pool?.failed_tests ?? 0))
  const worst = found[0] === undefined ? "out" : stateOf(found[0].item)
  return {
    page: "accounts",
    more: all - Math.min(mostOfKind, found.length),
    moreLink: linkTo("accounts", undefined, { state: worst }),
    rows: found.slice(0, mostOfKind).map(({ at, item, name }) => ({
      id: name,
      name,
      link: linkToAccount(item),
      what: (
        <>
          <AccountBadge item={item} receivedAt={at} />
          {stateOf(item) === "failed" && item.last_test?.success === false && (
            <span class="hint clip" title={item.last_test.message ?? undefined}>
              <Ago at={item.last_test.at} />
              {item.last_test.message !== null && ` · ${item.last_test.message}`}
            </span>
          )}
        </>
      )
    }))
  }
}

const useKeyGroup = (): Group => {
  const { keys: t, overview } = useTexts()
  useReread(keysAtom, 15_000)
  const reply = valueOf(useAtom(keysAtom))
  const found = (reply?.items ?? []).flatMap((item) => {
    const worst = item.state === "active" ? fullest(item) : undefined
    return worst !== undefined && worst.share >= nearLimit ? [{ item, worst }] : []
  })
  return {
    page: "keys",
    more: Math.max(0, found.length - mostOfKind),
    moreLink: linkTo("keys"),
    rows: found.slice(0, mostOfKind).map(({ item, worst }) => ({
      id: item.id,
      name: item.name ?? item.preview,
      link: linkTo("keys", item.id),
      what: (
        <>
          <Badge
            sign={worst.share >= 1 ? "▲" : "◔"}
            tone={worst.share >= 1 ? "bad" : "warn"}
            text={worst.share >= 1 ? overview.atLimit : overview.nearLimit}
          />
          <span class="hint">{t.used(worst)}</span>
        </>
      )
    }))
  }
}

const useErrorGroup = (): Group => {
  const t = useTexts().overview
  const errors = valueOf(useAtom(hourAtom))?.errors ?? []
  const link = (code: string) =>
    linkTo("requests", undefined, {
      ...lastHour,
      ...(code === "other" ? { outcome: "failed" } : { code: `"${code}"` })
    })
  return {
    page: "requests",
    more: Math.max(0, errors.length - mostOfKind),
    moreLink: linkTo("requests", undefined, { ...lastHour, outcome: "failed" }),
    rows: errors.slice(0, mostOfKind).map(({ code, count, last_at, last_request_id }) => ({
      id: code,
      name: code,
      link: link(code),
      what: (
        <>
          <Badge sign="✕" tone="bad" text={t.times(count)} />
          <a class="hint" href={linkTo("requests", last_request_id)}>
            {t.lastOne} <Ago at={last_at} />
          </a>
        </>
      )
    }))
  }
}

const settingsAtom = Admin.query("admin-settings", "fields", {
  reactivityKeys: ["config", "settings", "upstreams", "keys"]
})

/** What the configuration says and does not do. The place comes first in each sentence. */
const useSettingsGroup = (): Group => {
  const t = useTexts().overview
  const warnings = valueOf(useAtom(settingsAtom))?.warnings ?? []
  return {
    page: "settings",
    more: Math.max(0, warnings.length - mostOfKind),
    moreLink: linkTo("settings"),
    rows: warnings.slice(0, mostOfKind).map((warning) => ({
      id: warning,
      name: warning.split(" ", 1)[0]!.replace(/:$/, ""),
      link: linkTo("settings"),
      what: (
        <>
          <Badge sign="▲" tone="warn" text={t.warning} />
          <span class="hint" title={warning}>{warning}</span>
        </>
      )
    }))
  }
}

/** The rows in the order of before while they are pointed at, so that nothing moves under the pointer. */
const useHeld = (groups: ReadonlyArray<Group>) => {
  const ref = useRef<HTMLUListElement>(null)
  const order = useRef<ReadonlyArray<Row & { readonly page: Page }>>([])
  const rows = groups.flatMap(({ page, rows: of }) => of.map((row) => ({ ...row, page })))
  const isHeld = ref.current !== null && ref.current.matches(":hover, :focus-within")
  const idOf = (row: Row & { readonly page: Page }) => `${row.page} ${row.id}`
  if (isHeld) {
    const now = new Map(rows.map((row) => [idOf(row), row]))
    const before = new Set(order.current.map(idOf))
    order.current = [
      ...order.current.map((row) => now.get(idOf(row)) ?? row),
      ...rows.filter((row) => !before.has(idOf(row)))
    ]
  } else order.current = rows
  return { ref, rows: order.current }
}

export const Attention = () => {
  const { common, overview: t } = useTexts()
  const pool = useAtom(poolAtom)
  const hour = useAtom(hourAtom)
  const groups = [useUpstreamGroup(), useAccountGroup(), useKeyGroup(), useErrorGroup(), useSettingsGroup()]
  const { ref, rows } = useHeld(groups)
  const further = groups.filter(({ more }) => more > 0)
  const keyCount = valueOf(useAtom(keysAtom))?.total ?? 0
  const isKnown = pool !== undefined && valueOf(hour) !== undefined
  return (
    <Section name={t.attention}>
      {rows.length === 0 && further.length === 0
        ? isKnown && (
          <p class="calm">
            <Badge sign="✓" tone="good" text={t.nothing} />
          </p>
        )
        : (
          <ul class="attention live" ref={ref}>
            {rows.map((row, index) => (
              <li key={`${row.page} ${row.id}`}>
                <span class={`hint ${rows[index - 1]?.page === row.page ? "sr-only" : ""}`}>{t.kinds[row.page]}</span>
                <a class="what" href={row.link} title={row.name}>{row.name}</a>
                <div class="why">{row.what}</div>
              </li>
            ))}
            {further.map(({ more, moreLink, page }) => (
              <li key={page}>
                <span class="hint">{t.kinds[page]}</span>
                <a class="what" href={moreLink}>{common.andMore(more)}</a>
              </li>
            ))}
          </ul>
        )}
      {keyCount > keysRead && <p class="hint">{t.keysLookedAt(number(keysRead))}</p>}
    </Section>
  )
}
