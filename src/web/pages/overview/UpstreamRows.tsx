/**
 * The upstreams, one row each: state, work of the last minutes, and requests of the last 24 hours.
 */
import { useMemo } from "preact/hooks"
import { duration, number, percent, when } from "../../parts/format.ts"
import { Section } from "../../parts/Heading.tsx"
import { useReads } from "../../parts/Loaded.tsx"
import { Spark } from "../../parts/Spark.tsx"
import { Row, Table } from "../../parts/Table.tsx"
import { UpstreamBadge } from "../../parts/UpstreamBadge.tsx"
import { useReread } from "../../state/live.ts"
import { useTexts } from "../../state/preferences.ts"
import { readOf } from "../../state/reads.ts"
import { useValue } from "../../state/registry.ts"
import { linkTo } from "../../state/route.ts"
import { type UpstreamItem, upstreamsAtom } from "../../state/upstreams.ts"
import { dayLength, endOfHour, hoursOf, isoHour } from "../nouns/hours.ts"

/** The most upstreams that are shown; the page of upstreams has all. */
const mostShown = 20

/** How often the requests of a day are read again, in milliseconds. */
const readEvery = 30_000

/** The hours of each upstream, `undefined` until they are read, and where they are read. */
const useHours = () => {
  const end = endOfHour(Date.now())
  const usage = useMemo(
    () =>
      readOf("admin-usage", "query", {
        query: { by: "hour,upstream", from: isoHour(end - dayLength), to: isoHour(end), limit: "10000" }
      }),
    [end]
  )
  useReread(usage, readEvery)
  const rows = useValue(usage)?.rows
  const hoursOfUpstream = useMemo(() => {
    const byName = rows === undefined ? undefined : Map.groupBy(rows, ({ upstream }) => upstream ?? "")
    return (name: string) => byName === undefined ? undefined : hoursOf(byName.get(name) ?? [], end)
  }, [rows, end])
  return { usage, hoursOfUpstream }
}

const UpstreamRow = ({ hours, item }: {
  readonly item: UpstreamItem
  readonly hours: ReturnType<typeof hoursOf> | undefined
}) => {
  const { common, nouns, overview: t } = useTexts()
  const { in_use, last_5m, max_inflight, name, waiting } = item
  return (
    <Row
      cells={[
        <a href={linkTo("upstreams", name)}>{name}</a>,
        <UpstreamBadge item={item} />,
        number(Math.round(last_5m.requests / 0.5) / 10),
        last_5m.errors === 0 ?
          percent(0, last_5m.requests) :
          (
            <a class="bad" href={linkTo("requests", undefined, { upstream: name, outcome: "failed" })}>
              {percent(last_5m.errors, last_5m.requests)}
            </a>
          ),
        last_5m.p95_ms === null ? "–" : duration(last_5m.p95_ms),
        hours === undefined ? "–" : (
          <Spark
            name={t.hoursOf(name)}
            bars={hours.map(({ all, at, failed }) => ({
              all,
              failed,
              title: nouns.hour(when(at), number(all), number(failed))
            }))}
          />
        ),
        common.of(number(in_use), number(max_inflight)),
        number(waiting)
      ]}
    />
  )
}

export const UpstreamRows = () => {
  const { common, overview: t, upstreams: u } = useTexts()
  const upstreams = useValue(upstreamsAtom)?.upstreams ?? []
  const { hoursOfUpstream, usage } = useHours()
  const { failure } = useReads([upstreamsAtom, usage])
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
        columns={[
          { name: u.upstream, rank: 1, class: "text" },
          { name: u.state, rank: 1, width: "15rem" },
          { name: t.tryRate, rank: 2, number: true, width: "7.5rem" },
          { name: u.errors, rank: 2, number: true, width: "5.5rem" },
          { name: t.p95Name, rank: 2, number: true, width: "6rem" },
          { name: t.day, rank: 3, width: "14rem" },
          { name: u.slots, rank: 2, number: true, width: "7.5rem" },
          { name: t.waits, rank: 3, number: true, width: "5.5rem" }
        ]}
        rows={upstreams.length}
        empty=""
      >
        {upstreams.slice(0, mostShown).map((item) => (
          <UpstreamRow key={item.name} item={item} hours={hoursOfUpstream(item.name)} />
        ))}
      </Table>
      {upstreams.length > mostShown && (
        <p class="hint">
          <a href={linkTo("upstreams")}>{common.andMore(upstreams.length - mostShown)}</a>
        </p>
      )}
    </Section>
  )
}
