/**
 * What needs attention: upstreams and accounts that do not serve, keys near a limit, and the errors of the last hour.
 */
import type { ComponentChildren } from "preact"
import { useState } from "preact/hooks"
import { AccountBadge, accountSigns, BackIn, Badge, hasFailedTest, stateOf } from "../../parts/Badge.tsx"
import { number, percent } from "../../parts/format.ts"
import { Section } from "../../parts/Heading.tsx"
import { useReads } from "../../parts/Loaded.tsx"
import { useStill } from "../../parts/still.ts"
import { Changes } from "../../parts/Table.tsx"
import { Ago } from "../../parts/Time.tsx"
import { UpstreamBadge } from "../../parts/UpstreamBadge.tsx"
import { usedText } from "../../parts/UsedText.ts"
import { keysAtom, keysRead, nearLimits, troubled } from "../../state/attention.ts"
import { useCurrency } from "../../state/currency.ts"
import { poolAtom } from "../../state/live.ts"
import { accountName } from "../../state/names.ts"
import { readOf } from "../../state/reads.ts"
import { useAtom, useValue } from "../../state/registry.ts"
import { linkTo } from "../../state/route.ts"
import { useTexts } from "../../state/texts.ts"
import { upstreamsAtom, useCurrentUpstreams } from "../../state/upstreams.ts"
import { isOfQueue } from "../requests/verdict.ts"
import { knownAtom } from "./accounts.ts"
import { causesOf } from "./causes.ts"
import { mostlyFor } from "./errors.ts"
import type { Hour } from "./hour.ts"
import { hourAtom, lastHour } from "./Minutes.tsx"

/** The most rows of one kind. */
const mostOfKind = 8

/** The pages that the rows lead to. */
type Page = "upstreams" | "accounts" | "keys" | "requests" | "settings" | "callers"

interface Row {
  readonly id: string
  readonly name: string
  readonly link: string
  readonly what: ComponentChildren
}

interface Group {
  readonly page: Page
  readonly rows: ReadonlyArray<Row>
  /** The row for those beside the rows, directly behind them; `undefined` without any. */
  readonly more: Row | undefined
}

/** The row that leads to those beside the rows. */
const useMore = () => {
  const t = useTexts().common
  return (count: number, link: string): Row | undefined =>
    count <= 0 ? undefined : { id: "more", name: t.andMore(count), link, what: null }
}

const useUpstreamGroup = (): Group => {
  const moreOf = useMore()
  useCurrentUpstreams()
  const upstreams = useValue(upstreamsAtom)?.upstreams ?? []
  const found = troubled(upstreams)
  return {
    page: "upstreams",
    more: moreOf(found.length - mostOfKind, linkTo("upstreams")),
    rows: found.slice(0, mostOfKind).map((item) => ({
      id: item.name,
      name: item.name,
      link: linkTo("upstreams", item.name),
      what: <UpstreamBadge item={item} />
    }))
  }
}

/** Worst first, then by name, so that a row keeps its place. */
const severities = { out: 0, cooling: 2, ready: 3, disabled: 3 } as const
const severityOf = (item: Parameters<typeof hasFailedTest>[0]): number =>
  hasFailedTest(item) ? 1 : severities[stateOf(item)]

/** The most accounts of a cause that are named. */
const mostNamed = 20

/** The accounts of a cause, which unfold. A single one has its name in the row; what was unfolded stays. */
const OfCause = ({ names }: { readonly names: ReadonlyArray<string> }) => {
  const { common, overview: t } = useTexts()
  const [isOpen, setOpen] = useState(false)
  if (names.length === 1 && !isOpen) return null
  return (
    <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{t.which}</summary>
      <ul>
        {names.slice(0, mostNamed).map((name) => (
          <li key={name}>
            <a href={linkTo("accounts", name)}>{name}</a>
          </li>
        ))}
      </ul>
      {names.length > mostNamed && <p class="hint">{common.andMore(names.length - mostNamed)}</p>}
    </details>
  )
}

const useAccountGroup = (): Group => {
  const moreOf = useMore()
  const { overview: t, reason, states } = useTexts()
  const known = useAtom(knownAtom)
  const pool = useAtom(poolAtom)
  const found = known.items.filter(({ item }) => severityOf(item) < severities.ready)
    .map((each) => ({
      ...each,
      name: accountName(each.item),
      state: hasFailedTest(each.item) ? "failed" as const : stateOf(each.item),
      reason: hasFailedTest(each.item) ? null : each.item.health_reason,
      backAt: each.item.recovery_seconds === null ? undefined : each.at + each.item.recovery_seconds * 1_000
    }))
    .sort((a, b) => severityOf(a.item) - severityOf(b.item) || (a.name < b.name ? -1 : 1))
  const all = Math.max(found.length, (pool?.out ?? 0) + (pool?.cooling ?? 0) + (pool?.failed_tests ?? 0))
  const worst = found[0]?.state ?? "out"
  const causes = causesOf(found)
  const shown = causes.slice(0, mostOfKind)
  const count = shown.reduce((sum, { accounts }) => sum + accounts.length, 0)
  return {
    page: "accounts",
    more: moreOf(all - count, linkTo("accounts", undefined, { state: worst })),
    rows: shown.map(({ accounts, id, nextAt }) => {
      const [{ at, item, name, state }] = accounts
      const ofCause = <OfCause key="which" names={accounts.map((each) => each.name)} />
      if (accounts.length === 1) {
        return {
          id: `cause ${id}`,
          name,
          link: linkTo("accounts", name),
          what: (
            <>
              <AccountBadge item={item} receivedAt={at} />
              {hasFailedTest(item) && item.last_test?.success === false && (
                <span class="hint clip" title={item.last_test.message ?? undefined}>
                  <Ago at={item.last_test.at} />
                  {item.last_test.message !== null && ` · ${item.last_test.message}`}
                </span>
              )}
              {ofCause}
            </>
          )
        }
      }
      return {
        id: `cause ${id}`,
        name: t.accountCount(accounts.length),
        link: linkTo("accounts", undefined, { state }),
        what: (
          <>
            <Badge {...accountSigns[state]} text={states[state]} />
            {item.health_reason !== null && state !== "failed" && (
              <span class="hint">{reason(item.health_reason)}</span>
            )}
            {nextAt !== undefined && state !== "failed" && (
              <span class="hint">
                {t.first}
                <BackIn seconds={(nextAt - at) / 1_000} receivedAt={at} />
              </span>
            )}
            {ofCause}
          </>
        )
      }
    })
  }
}

const useKeyGroup = (): Group => {
  const moreOf = useMore()
  const { keys, overview } = useTexts()
  const currency = useCurrency()
  const found = nearLimits(useValue(keysAtom)?.items ?? [])
  return {
    page: "keys",
    more: moreOf(found.length - mostOfKind, linkTo("keys")),
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
          <span class="hint">{usedText(worst, keys, currency)}</span>
        </>
      )
    }))
  }
}

/** How many errors there were, and the key, model or upstream that most of them are for. */
const Mostly = ({ error }: { readonly error: Hour["errors"][number] }) => {
  const { overview: t, usage } = useTexts()
  const most = mostlyFor(error)
  if (most === undefined) return null
  const { count, name, noun, value } = most
  const special = noun === "key" ? usage.specialKeys(value) : undefined
  return (
    <span class="hint">
      {t.mostly[noun](count < error.count ? percent(count, error.count) : undefined)}{" "}
      {special === undefined ? <a href={linkTo(`${noun}s`, value)}>{name ?? value}</a> : special}
    </span>
  )
}

/** The errors of the hour: those that callers are at fault for stand at the end, and ask for nothing. */
const useErrorGroups = (): readonly [errors: Group, callers: Group] => {
  const moreOf = useMore()
  const { inspector, overview: t } = useTexts()
  const errors = useValue(hourAtom)?.errors ?? []
  const link = (code: string) =>
    linkTo("requests", undefined, {
      ...lastHour,
      ...(code === "other" ? { outcome: "failed" } : { code: `"${code}"` })
    })
  const groupOf = (page: "callers" | "requests"): Group => {
    const isOfCallers = page === "callers"
    const own = errors.filter(({ fault }) => (fault === "caller") === isOfCallers)
    return {
      page,
      more: moreOf(own.length - mostOfKind, linkTo("requests", undefined, { ...lastHour, outcome: "failed" })),
      rows: own.slice(0, mostOfKind).map((error) => {
        const { code, count, fault, last_at, last_request_id } = error
        const advice = isOfCallers ? undefined : inspector.advice(isOfQueue(code, fault) ? "queue_full" : code)
        return {
          id: `${code} ${fault}`,
          name: code,
          link: link(code),
          what: (
            <>
              <Badge sign={isOfCallers ? "–" : "✕"} tone={isOfCallers ? "muted" : "bad"} text={t.times(count)} />
              <Mostly error={error} />
              <a class="hint" href={linkTo("requests", last_request_id)}>
                {t.lastOne} <Ago at={last_at} />
              </a>
              {advice !== undefined && <span class="hint">{advice}</span>}
            </>
          )
        }
      })
    }
  }
  return [groupOf("requests"), groupOf("callers")]
}

const settingsAtom = readOf("admin-settings", "fields", {
  reactivityKeys: ["config", "settings", "upstreams", "keys"]
})

/** What the configuration says and does not do. The place comes first in each sentence. */
const useSettingsGroup = (): Group => {
  const moreOf = useMore()
  const t = useTexts().overview
  const warnings = useValue(settingsAtom)?.warnings ?? []
  return {
    page: "settings",
    more: moreOf(warnings.length - mostOfKind, linkTo("settings")),
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

export const Attention = () => {
  const t = useTexts().overview
  const pool = useAtom(poolAtom)
  const { reads } = useAtom(knownAtom)
  const { failure, isRead } = useReads([upstreamsAtom, keysAtom, hourAtom, settingsAtom, ...reads])
  const [errors, callers] = useErrorGroups()
  const groups = [useUpstreamGroup(), useAccountGroup(), useKeyGroup(), errors, useSettingsGroup(), callers]
  const all = groups.flatMap(({ more, page, rows: of }) =>
    [...of, ...more === undefined ? [] : [more]].map((row) => ({ ...row, page }))
  )
  const { changes, ref, shown: rows, take } = useStill<Row & { readonly page: Page }, HTMLUListElement>(
    all,
    ({ id, page }) => `${page} ${id}`,
    []
  )
  const keyCount = useValue(keysAtom)?.total ?? 0
  return (
    <Section name={t.attention}>
      {failure}
      {rows.length === 0
        ? pool !== undefined && isRead && failure === null && (
          <p class="card">
            <Badge sign="✓" tone="good" text={t.nothing} />
          </p>
        )
        : (
          <div>
            <Changes changes={changes} onTake={take} />
            <ul class="card rows live" ref={ref}>
              {rows.map((row, index) => (
                <li key={`${row.page} ${row.id}`} class={row.page === "callers" ? "muted" : ""}>
                  <span class={`hint ${rows[index - 1]?.page === row.page ? "sr-only" : ""}`}>{t.kinds[row.page]}</span>
                  <a class="what" href={row.link} title={row.name}>{row.name}</a>
                  <div class="why">{row.what}</div>
                </li>
              ))}
            </ul>
          </div>
        )}
      {keyCount > keysRead && <p class="hint">{t.keysLookedAt(number(keysRead))}</p>}
    </Section>
  )
}
