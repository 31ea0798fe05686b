/**
 * What a key, a model, an upstream or an account has done in the last 24 hours, what it touched, and its last failures.
 */
import { useMemo } from "preact/hooks"
import { Card, Figure } from "../../parts/Card.tsx"
import { compact, duration, minuteOfDay, money, number, percent } from "../../parts/format.ts"
import { Section } from "../../parts/Heading.tsx"
import { useLayout } from "../../parts/layout.ts"
import { Loaded } from "../../parts/Loaded.tsx"
import { Breaking } from "../../parts/Name.tsx"
import { Row, Table } from "../../parts/Table.tsx"
import { When } from "../../parts/Time.tsx"
import { isMissing } from "../../state/failure.ts"
import { useReread } from "../../state/live.ts"
import { readOf } from "../../state/reads.ts"
import { linkTo, type Query } from "../../state/route.ts"
import { useTexts } from "../../state/texts.ts"
import { dayLength, endOfHour, hoursOf, isoHour } from "./hours.ts"
import { Hours } from "./Hours.tsx"
import { slownessOf } from "./slow.ts"
import { type TopBy, topOf, TopTable } from "./Top.tsx"

/** How often figures of a day are read again, in milliseconds. */
const readEvery = 15_000

/** The filter of usage: one value of a dimension. */
type Of = Readonly<Partial<Record<"account" | "key" | "model" | "upstream", string>>>

const useDay = (of: Of, by: string, limit: number) => {
  const end = endOfHour(Date.now())
  const usage = useMemo(
    () =>
      readOf("admin-usage", "query", {
        query: { ...of, by, from: isoHour(end - dayLength), to: isoHour(end), limit: String(limit) }
      }),
    [JSON.stringify(of), by, end]
  )
  useReread(usage, readEvery)
  return { end, usage }
}

/** Since when requests are slower than on the rest of the day, and what part of their time has grown. */
const Slow = ({ link, rows }: {
  readonly rows: Parameters<typeof slownessOf>[0]
  readonly link: (more: Query) => string
}) => {
  const t = useTexts().nouns
  const slow = slownessOf(rows)
  if (slow === undefined) return null
  const { p95, phase, share, since, usual } = slow
  return (
    <p class="notice warn">
      {t.slow(minuteOfDay(since), duration(p95), duration(usual))} {t.phases[phase](percent(share, 1))}{" "}
      <a href={link({ range: "", from: isoHour(since), sort: "duration_ms", order: "desc" })}>{t.slowest}</a>
    </p>
  )
}

/** Requests, errors, time and cost of the last 24 hours, and of each hour the requests and how long they took. `requests` filters their records. */
export const Day = ({ of, requests }: { readonly of: Of; readonly requests: Query }) => {
  const { common, nouns: t, usage: u } = useTexts()
  const { end, usage } = useDay(of, "hour", 24)
  const link = (more: Query = {}) => linkTo("requests", undefined, { ...requests, range: "24h", ...more })
  return (
    <Section name={t.day}>
      <Loaded
        atom={usage}
        failed={(failure) => isMissing(failure) ? <p class="notice">{u.unavailable}</p> : undefined}
      >
        {({ currency, rows, totals }) => (
          <Card>
            <div class="figures">
              <Figure name={t.requests} link={link()} of={t.tokens(compact(totals.total_tokens))}>
                {compact(totals.requests)}
              </Figure>
              <Figure
                name={t.errors}
                link={link({ outcome: "failed" })}
                of={t.failed(number(totals.failed))}
                tone={totals.failed * 20 >= totals.requests && totals.failed > 0 ? "bad" : ""}
              >
                {percent(totals.failed, totals.requests)}
              </Figure>
              <Figure
                name={u.percentiles.duration_p95_ms}
                link={link({ sort: "duration_ms", order: "desc" })}
                of={totals.first_event_p95_ms === null ? "" : t.firstWithin(duration(totals.first_event_p95_ms))}
              >
                {totals.duration_p95_ms === null ? "–" : duration(totals.duration_p95_ms)}
              </Figure>
              <Figure
                name={u.cost}
                link={link({ sort: "cost", order: "desc" })}
                of={totals.unpriced_requests === 0 ? "" : common.unpriced(totals.unpriced_requests)}
              >
                {currency === null ? "–" : money(totals.cost, currency)}
              </Figure>
            </div>
            <Hours hours={hoursOf(rows, end)} requests={requests} />
            <Slow rows={rows} link={link} />
          </Card>
        )}
      </Loaded>
    </Section>
  )
}

/** The most rows of a list of what is touched. */
const mostTouched = 5

/** The values of a dimension with the most requests of the last 24 hours. `linkOf` leads to one; `undefined` for a value without a page. */
export const Touched = ({ by, linkOf, name, of }: {
  readonly of: Of
  readonly by: TopBy
  readonly name: string
  readonly linkOf: (row: { readonly value: string; readonly text: string }) => string | undefined
}) => {
  const { usage } = useDay(of, by, 1_000)
  return (
    <Loaded atom={usage} failed={(failure) => isMissing(failure) ? <></> : undefined}>
      {({ currency, rows }) => (
        <TopTable
          by={by}
          name={name}
          currency={currency}
          rows={topOf(rows, by, "requests", mostTouched)}
          linkOf={linkOf}
        />
      )}
    </Loaded>
  )
}

const mostFailures = 10

/** The last ten requests that failed, of a filter of requests. */
export const LastFailures = ({ requests }: { readonly requests: Query }) => {
  const { nouns: t, requests: r } = useTexts()
  const isCards = useLayout() === "cards"
  const list = useMemo(
    () => readOf("admin-requests", "list", { query: { ...requests, outcome: "failed", limit: mostFailures } }),
    [JSON.stringify(requests)]
  )
  useReread(list, readEvery)
  return (
    <Section name={t.failures}>
      <Loaded atom={list}>
        {({ items }) => (
          <Table
            name={t.failures}
            columns={[
              { name: r.time, rank: 1, class: "nowrap" },
              { name: r.facets.code, rank: 1, class: "text" },
              // What they are is plain without their names.
              { name: r.model, rank: 2, hidden: isCards, class: "text" },
              { name: r.key, rank: 2, hidden: isCards, class: "text" },
              { name: r.answeredBy, rank: isCards ? 4 : 2, class: "text" }
            ]}
            rows={items.length}
            empty={t.noFailures}
            compact
          >
            {items.map((item) => (
              <Row
                key={item.id}
                cells={[
                  <a key="time" href={linkTo("requests", item.id)} title={item.request_id}>
                    <When at={item.started_at} />
                  </a>,
                  <>
                    <code>{item.error ?? "–"}</code> <span class="hint">{item.status}</span>
                  </>,
                  item.model === null ? "–" : <a key="model" href={linkTo("models", item.model)}>{item.model}</a>,
                  item.key_name ?? r.keyNames(item.key),
                  <Breaking
                    key="by"
                    text={[item.target, item.account].filter((each) => each).join(" · ") || "–"}
                  />
                ]}
              />
            ))}
          </Table>
        )}
      </Loaded>
    </Section>
  )
}
