/**
 * What needs attention: upstreams and accounts that do not serve, keys near a limit, and the errors of the last hour.
 */
import type { ComponentChildren } from "preact"
import { useState } from "preact/hooks"
import { AccountBadge, accountSigns, BackIn, Badge, hasFailedTest } from "../../parts/Badge.tsx"
import { number, percent, sentence } from "../../parts/format.ts"
import { Section } from "../../parts/Heading.tsx"
import { useReads } from "../../parts/Loaded.tsx"
import { useStill } from "../../parts/still.ts"
import { Changes } from "../../parts/Table.tsx"
import { Ago, Since } from "../../parts/Time.tsx"
import { UpstreamBadge } from "../../parts/UpstreamBadge.tsx"
import { usedText } from "../../parts/UsedText.ts"
import { keysAtom, keysRead, nearLimits, troubled } from "../../state/attention.ts"
import { useCurrency } from "../../state/currency.ts"
import type { Received } from "../../state/live.ts"
import { accountName } from "../../state/names.ts"
import { useAtom, useValue } from "../../state/registry.ts"
import { linkTo } from "../../state/route.ts"
import { useTexts } from "../../state/texts.ts"
import { upstreamsAtom, useCurrentUpstreams } from "../../state/upstreams.ts"
import { isOfQueue } from "../requests/verdict.ts"
import { accountsAtom, type Cause, knownAtom } from "./accounts.ts"
import { mostlyFor } from "./errors.ts"
import type { Hour } from "./hour.ts"
import { hourAtom, lastHour, settingsAtom } from "./reads.ts"

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

/** The accounts of a cause, which unfold. A single one has its name in the row; what was unfolded stays. */
const OfCause = ({ cause: { accounts, names } }: { readonly cause: Cause }) => {
  const { common, overview: t } = useTexts()
  const [isOpen, setOpen] = useState(false)
  if (accounts === 1 && !isOpen) return null
  return (
    <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{t.which}</summary>
      <ul>
        {names.map((name) => (
          <li key={name}>
            <a href={linkTo("accounts", name)}>{name}</a>
          </li>
        ))}
      </ul>
      {accounts > names.length && <p class="hint">{common.andMore(accounts - names.length)}</p>}
    </details>
  )
}

/** What the accounts of a cause are, why, since when, and when the first of them is tried again. */
const WhyOfMany = ({ at, cause: { reason: why, recovery_seconds, since, state } }: {
  readonly cause: Cause
  readonly at: number
}) => {
  const { overview: t, reason, states } = useTexts()
  return (
    <>
      <Badge {...accountSigns[state]} text={states[state]} />
      {why !== null && <span class="hint">{reason(why)}</span>}
      {since !== null && <Since at={since} />}
      {recovery_seconds !== null && state !== "failed" && (
        <span class="hint">
          {t.first}
          <BackIn seconds={recovery_seconds} receivedAt={at} />
        </span>
      )}
    </>
  )
}

/** The same of one account, with what its last test said. */
const WhyOfOne = ({ at, item }: Received) => (
  <>
    <AccountBadge item={item} receivedAt={at} />
    {hasFailedTest(item) && item.last_test?.success === false && (
      <span class="hint clip" title={item.last_test.message ?? undefined}>
        <Ago at={item.last_test.at} />
        {item.last_test.message !== null && ` · ${item.last_test.message}`}
      </span>
    )}
  </>
)

const useAccountGroup = (): Group => {
  const moreOf = useMore()
  const t = useTexts().overview
  const { at, causes, items } = useAtom(knownAtom)
  const shown = causes.slice(0, mostOfKind)
  const others = causes.slice(mostOfKind)
  return {
    page: "accounts",
    more: moreOf(
      others.reduce((sum, { accounts }) => sum + accounts, 0),
      linkTo("accounts", undefined, { state: others[0]?.state ?? "" })
    ),
    rows: shown.map((cause) => {
      const { accounts, names: [first = ""], reason, state } = cause
      const one = accounts === 1 ? items.find(({ item }) => accountName(item) === first) : undefined
      return {
        id: `cause ${state} ${reason}`,
        name: accounts === 1 ? first : t.accountCount(accounts),
        link: accounts === 1 ? linkTo("accounts", first) : linkTo("accounts", undefined, { state }),
        what: (
          <>
            {one === undefined ? <WhyOfMany cause={cause} at={at} /> : <WhyOfOne {...one} />}
            <OfCause key="which" cause={cause} />
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

/** What the configuration says and does not do. The place comes first in each sentence. */
const useSettingsGroup = (): Group => {
  const moreOf = useMore()
  const t = useTexts().overview
  const warnings = useValue(settingsAtom)?.warnings ?? []
  return {
    page: "settings",
    more: moreOf(warnings.length - mostOfKind, linkTo("settings")),
    rows: warnings.slice(0, mostOfKind).map((warning) => {
      const [place = ""] = warning.split(" ", 1)
      return {
        id: warning,
        name: place.replace(/:$/, ""),
        link: linkTo("settings"),
        what: (
          <>
            <Badge sign="▲" tone="warn" text={t.warning} />
            <span class="hint" title={warning}>{sentence(warning.slice(place.length).trim())}</span>
          </>
        )
      }
    })
  }
}

/** What says whether anything needs attention. */
export const needs = [upstreamsAtom, keysAtom, hourAtom, settingsAtom, accountsAtom]

export const Attention = () => {
  const t = useTexts().overview
  const { failure, isRead } = useReads(needs)
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
        ? isRead && failure === null && (
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
