/**
 * The upstreams, one row each: state, attempts of the last minutes and of the last hour, and their slots.
 */
import type { ComponentChildren } from "preact"
import { CurrentWindows } from "../../parts/CurrentWindows.tsx"
import { duration, number, percent } from "../../parts/format.ts"
import { Section } from "../../parts/Heading.tsx"
import { useLayout } from "../../parts/layout.ts"
import { useReads } from "../../parts/Loaded.tsx"
import { Spark } from "../../parts/Spark.tsx"
import { type Column, Row, Table } from "../../parts/Table.tsx"
import { UpstreamBadge } from "../../parts/UpstreamBadge.tsx"
import { useValue } from "../../state/registry.ts"
import { linkTo } from "../../state/route.ts"
import { useTexts } from "../../state/texts.ts"
import { type UpstreamItem, upstreamsAtom } from "../../state/upstreams.ts"

/** The most upstreams that are shown; the page of upstreams has all. */
const mostShown = 20

/** The columns of what an upstream does now, behind its name. */
export const useWorkColumns = (): ReadonlyArray<Column> => {
  const { overview: t, upstreams: u } = useTexts()
  const isCards = useLayout() === "cards"
  return [
    { name: u.state, rank: 1, width: "15rem" },
    { name: t.tryRate, rank: 2, number: true, width: "7.5rem" },
    { name: u.errors, rank: 2, number: true, width: "5.5rem" },
    { name: t.p95Name, rank: 2, number: true, width: "6rem" },
    { name: t.ofHour, rank: 4, width: "8.6rem" },
    { name: u.slots, rank: isCards ? 4 : 2, number: true, width: "7.5rem" },
    { name: t.waits, rank: 4, number: true, width: "5.5rem" }
  ]
}

/** Minutes of a step of the hour. */
const stepMinutes = 5

/** Their cells. */
export const useWorkCells = (item: UpstreamItem): ReadonlyArray<ComponentChildren> => {
  const { common, overview: t } = useTexts()
  const { in_use, last_5m, last_hour, max_inflight, name, waiting } = item
  return [
    <>
      <UpstreamBadge item={item} />
      <CurrentWindows of={item} />
    </>,
    number(Math.round(last_5m.requests / 0.5) / 10),
    last_5m.errors === 0 ?
      percent(0, last_5m.requests) :
      (
        <a class="bad" href={linkTo("requests", undefined, { upstream: name, outcome: "failed" })}>
          {percent(last_5m.errors, last_5m.requests)}
        </a>
      ),
    last_5m.p95_ms === null ? "–" : duration(last_5m.p95_ms),
    last_hour.every(({ requests }) => requests === 0) ? "–" : (
      <Spark
        name={t.hourOf(name)}
        bars={last_hour.map(({ errors, requests }, step) => ({
          all: requests,
          failed: Math.min(requests, errors),
          title: t.stepOf((last_hour.length - step) * stepMinutes, requests, errors)
        }))}
      />
    ),
    common.of(number(in_use), number(max_inflight)),
    number(waiting)
  ]
}

const UpstreamRow = ({ item }: { readonly item: UpstreamItem }) => (
  <Row cells={[<a href={linkTo("upstreams", item.name)}>{item.name}</a>, ...useWorkCells(item)]} />
)

export const UpstreamRows = () => {
  const { common, upstreams: u } = useTexts()
  const upstreams = useValue(upstreamsAtom)?.upstreams ?? []
  const { failure } = useReads([upstreamsAtom])
  const columns = useWorkColumns()
  if (upstreams.length === 0) {
    return failure === null
      ? null
      : <Section name={common.pages.upstreams}>{failure}</Section>
  }
  return (
    <Section name={common.pages.upstreams}>
      {failure}
      <Table
        name={common.pages.upstreams}
        columns={[{ name: u.upstream, rank: 1, class: "text" }, ...columns]}
        rows={upstreams.length}
        empty=""
      >
        {upstreams.slice(0, mostShown).map((item) => <UpstreamRow key={item.name} item={item} />)}
      </Table>
      {upstreams.length > mostShown && (
        <p class="hint">
          <a href={linkTo("upstreams")}>{common.andMore(upstreams.length - mostShown)}</a>
        </p>
      )}
    </Section>
  )
}
