/**
 * The course of a request as a waterfall: queue, tries, stream, and when frames came. Each part leads to the frames of its time.
 */
import { useMemo, useRef, useState } from "preact/hooks"
import { Chip } from "../../parts/Card.tsx"
import { duration, number } from "../../parts/format.ts"
import { Section } from "../../parts/Heading.tsx"
import { Sign } from "../../parts/Icon.tsx"
import { Middle } from "../../parts/Name.tsx"
import type { RequestRecord } from "../../state/requests.ts"
import { linkTo } from "../../state/route.ts"
import { useTexts } from "../../state/texts.ts"
import { moment } from "./moment.ts"
import type { ReadRow, ReadSides } from "./sides.ts"
import { type Bin, binsOf, type Interval, type Lane, ratesOf, type Span, ticksOf, waterfallOf } from "./waterfall.ts"

/** The kinds of spans in the order in which they follow each other. */
const spanKinds = ["queue", "try", "stream", "gateway"] as const

/** Parts of the scale in which frames are counted. */
const binCount = 60

const place = ({ from, to }: Interval, end: number) => ({
  left: `${(from / end) * 100}%`,
  width: `${((to - from) / end) * 100}%`
})

/** The least width at which a span can be seen. */
const leastWidth = "5px"

/** The places of the spans of a lane, which follow each other: each that is too short to be seen moves those behind it. */
const placesOf = (
  spans: ReadonlyArray<Span>,
  end: number
): ReadonlyArray<{ readonly left: string; readonly width: string }> => {
  let left = ""
  return spans.map((span, index) => {
    left = index === 0 ? `${(span.from / end) * 100}%` : left
    const next = `max(${(span.to / end) * 100}%, ${left} + ${leastWidth})`
    const own = { left, width: `calc(${next} - ${left})` }
    left = next
    return own
  })
}

/** Tokens a second over the time of the stream. */
const Spark = ({ bins, end, rates, span }: {
  readonly bins: ReadonlyArray<Bin>
  readonly rates: ReadonlyArray<number>
  readonly span: Interval
  readonly end: number
}) => {
  const most = Math.max(...rates)
  if (most === 0) return null
  const from = (span.from / end) * binCount
  const width = Math.max(0.01, ((span.to - span.from) / end) * binCount)
  const points = bins.map((_, i) => `${i + 0.5},${(1 - rates[i]! / most).toFixed(3)}`)
  return (
    <svg class="spark" viewBox={`${from} -0.15 ${width} 1.3`} preserveAspectRatio="none" aria-hidden="true">
      <path d={`M0,1L${points.join("L")}L${binCount},1`} />
    </svg>
  )
}

interface Leading {
  readonly end: number
  /** Shows the frames of a time. */
  readonly onTime: (at: number) => void
}

const SpanButton = ({ at, children, name, onTime, span }: Pick<Leading, "onTime"> & {
  readonly span: Span
  readonly at: { readonly left: string; readonly width: string }
  readonly name: string
  readonly children?: preact.ComponentChildren
}) => (
  <button
    type="button"
    class={`span ${span.kind} ${span.failed ? "failed" : ""} ${span.open ? "open" : ""}`}
    style={at}
    aria-label={name}
    title={name}
    onClick={() => onTime(span.from)}
  >
    {children}
  </button>
)

/** How a try ended: a sign and words. */
const useOutcome = (record: RequestRecord) => {
  const t = useTexts().inspector
  return (at: number | undefined): { readonly sign: string; readonly tone: string; readonly text: string } => {
    const isLast = at === undefined || at === record.tries.length - 1
    const { cause, status, took_ms } = at === undefined
      ? { cause: null, status: null, took_ms: null }
      : record.tries[at]!
    if (cause !== null) {
      return { sign: "✕", tone: "bad", text: `${t.causes(cause)}${status === null ? "" : ` ${status}`}` }
    }
    if (isLast && record.outcome === "failed") return { sign: "✕", tone: "bad", text: record.error ?? t.failed }
    if (isLast && record.outcome === "cancelled") return { sign: "↩", tone: "muted", text: t.given }
    if (isLast && record.outcome === "open" && took_ms === null) return { sign: "…", tone: "", text: t.trying }
    return { sign: "✓", tone: "good", text: t.answered }
  }
}

const Spans = ({ bins, lane, rates, record, ...leading }: Leading & {
  readonly lane: Lane
  readonly record: RequestRecord
  readonly bins: ReadonlyArray<Bin>
  readonly rates: ReadonlyArray<number>
}) => {
  const t = useTexts().inspector
  const outcome = useOutcome(record)(lane.place)
  const one = lane.place === undefined ? undefined : record.tries[lane.place]
  const who = one === undefined ? t.gateway : one.account || `${one.upstream}/${one.model}`
  const nameOf = (span: Span) =>
    t.spanIs(
      t.spans[span.kind],
      lane.place === undefined ? undefined : lane.place + 1,
      span.kind === "queue" ? "" : span.failed || span.kind !== "gateway" ? `${who}: ${outcome.text}` : "",
      moment(span.from),
      moment(span.to),
      duration(span.to - span.from)
    )
  const places = placesOf(lane.spans, leading.end)
  return (
    <div class="lane">
      <span class="lane-name" title={one === undefined ? who : `${one.upstream}/${one.model} ${one.account}`}>
        {lane.place === undefined ? "" : <span class="place">{lane.place + 1}</span>}
        {one === undefined || one.account === ""
          ? <span class="who">{who}</span>
          : (
            <a class="who" href={linkTo("accounts", one.account)} aria-label={who}>
              <Middle text={who} />
            </a>
          )}
        <span class={`badge ${outcome.tone}`}>
          <Sign of={outcome.sign} />
          {outcome.text}
        </span>
      </span>
      <span class="track">
        {lane.spans.map((span, index) => (
          <SpanButton key={span.kind} onTime={leading.onTime} at={places[index]!} span={span} name={nameOf(span)}>
            {span.kind === "stream" && <Spark bins={bins} rates={rates} span={span} end={leading.end} />}
          </SpanButton>
        ))}
      </span>
      <span class="lane-end hint">
        {duration((lane.spans.at(-1)?.to ?? 0) - (lane.spans[0]?.from ?? 0))}
      </span>
    </div>
  )
}

/** The frames of a side, counted. The arrow keys move from bin to bin. */
const Density = ({ bins, end, name, onTime, rates }: Leading & {
  readonly name: string
  readonly bins: ReadonlyArray<Bin>
  /** Tokens a second in each bin, where they are known. */
  readonly rates: ReadonlyArray<number> | undefined
}) => {
  const t = useTexts().inspector
  const ref = useRef<HTMLSpanElement>(null)
  const filled = bins.flatMap((bin, i) => bin.frames === 0 ? [] : [i])
  const [chosen, setChosen] = useState(0)
  const current = filled.includes(chosen) ? chosen : filled[0]
  const most = Math.max(1, ...bins.map(({ frames }) => frames))
  const total = bins.reduce((sum, { frames }) => sum + frames, 0)
  const move = (event: KeyboardEvent) => {
    const steps: Readonly<Record<string, number>> = {
      ArrowRight: 1,
      ArrowLeft: -1,
      Home: -filled.length,
      End: filled.length
    }
    const step = steps[event.key]
    if (step === undefined || current === undefined) return
    event.preventDefault()
    const next = filled[Math.max(0, Math.min(filled.length - 1, filled.indexOf(current) + step))]!
    setChosen(next)
    ref.current?.querySelector<HTMLElement>(`[data-bin="${next}"]`)?.focus()
  }
  return (
    <div class="lane">
      <span class="lane-name">
        <span class="who">{name}</span>
      </span>
      <span ref={ref} class="track bins" role="group" aria-label={t.framesOf(name)} onKeyDown={move}>
        {bins.map((bin, i) => {
          if (bin.frames === 0) return null
          const rate = rates?.[i] ?? 0
          const text = t.binIs(
            moment(bin.from),
            moment(bin.to),
            bin.frames,
            rate === 0 ? undefined : number(Math.round(rate))
          )
          return (
            <button
              key={i}
              type="button"
              class="bin"
              data-bin={i}
              tabIndex={i === current ? 0 : -1}
              style={{ ...place(bin, end), "--height": `${Math.max(0.12, bin.frames / most) * 100}%` }}
              aria-label={text}
              title={text}
              onClick={() => {
                setChosen(i)
                onTime(bin.from)
              }}
            />
          )
        })}
      </span>
      <span class="lane-end hint">{t.frameCount(total)}</span>
    </div>
  )
}

/** What the colours of the spans mean, as far as they are there. */
const Legend = ({ hasFrames, lanes }: { readonly lanes: ReadonlyArray<Lane>; readonly hasFrames: boolean }) => {
  const t = useTexts().inspector
  const spans = lanes.flatMap((lane) => lane.spans)
  const kinds = spanKinds.filter((kind) => spans.some((span) => span.kind === kind && !span.failed))
  const failed = spans.some((span) => span.failed)
  return (
    <p class="actions hint">
      {kinds.map((kind) => (
        <span key={kind} class="of-span">
          <span class={`swatch span ${kind}`} aria-hidden="true" />
          {t.spans[kind]}
        </span>
      ))}
      {failed && (
        <span class="of-span">
          <span class="swatch span failed" aria-hidden="true" />
          {t.failed}
        </span>
      )}
      {hasFrames && (
        <span class="of-span">
          <span class="swatch span frames" aria-hidden="true" />
          {t.frames}
        </span>
      )}
    </p>
  )
}

const binned = (rows: ReadonlyArray<ReadRow>, end: number) => binsOf(rows, end, binCount)

/** A tick of the scale, in the unit of the whole scale. */
const tickText = (at: number, step: number, end: number): string =>
  end < 1_000
    ? `${Number(at.toFixed(2))} ms`
    : `${(at / 1_000).toFixed(step < 100 ? 2 : step < 1_000 ? 1 : 0)} s`

export const TimeLine = ({ now, onTime, record, sides }: {
  readonly record: RequestRecord
  readonly sides: ReadSides
  /** How long the request has been running, while it runs. */
  readonly now: number
  readonly onTime: (at: number) => void
}) => {
  const t = useTexts().inspector
  const { client, upstream } = sides
  const { end, gaps, lanes } = useMemo(() => {
    const times = (rows: ReadonlyArray<ReadRow>) => rows.map(({ at }) => at)
    return waterfallOf({ ...record, upstream: times(upstream), client: times(client) }, now)
  }, [record, sides, now])
  const ofUpstream = useMemo(() => binned(upstream, end), [upstream, end])
  const ofClient = useMemo(() => binned(client, end), [client, end])
  const rates = useMemo(() => {
    const bins = upstream.some(({ length }) => length > 0) ? ofUpstream : ofClient
    // While the count is unknown, a token counts as four characters.
    const characters = bins.reduce((sum, { length }) => sum + length, 0)
    return ratesOf(bins, record.usage?.completion_tokens || characters / 4)
  }, [ofUpstream, ofClient, record.usage])
  const { step, ticks } = ticksOf(end)
  const leading = { end, onTime }
  return (
    <Section name={t.timeLine}>
      <div class="card waterfall">
        <div class="lanes">
          {lanes.map((lane) => (
            <Spans key={lane.place} {...leading} lane={lane} record={record} bins={ofUpstream} rates={rates} />
          ))}
          {upstream.length > 0 && <Density {...leading} name={t.fromUpstream} bins={ofUpstream} rates={rates} />}
          {client.length > 0 && <Density {...leading} name={t.toClient} bins={ofClient} rates={undefined} />}
          <div class="lane scale hint" aria-hidden="true">
            <span />
            <span class="track">
              {ticks.map((at) => (
                <span key={at} class="tick" style={{ left: `${(at / end) * 100}%` }}>{tickText(at, step, end)}</span>
              ))}
            </span>
            <span class="lane-end">{duration(end)}</span>
          </div>
        </div>
        <div class="actions between">
          <Legend lanes={lanes} hasFrames={upstream.length + client.length > 0} />
          {gaps.length > 0 && (
            <ul class="actions" aria-label={t.gaps}>
              {gaps.map(({ from, kind, to }) => (
                <li key={`${kind} ${from}`}>
                  <Chip onClick={() => onTime(from)}>
                    {t.gapIs(t.gapKinds[kind], duration(to - from), moment(from))}
                  </Chip>
                </li>
              ))}
            </ul>
          )}
        </div>
      </div>
      {record.server_timing !== null && <p class="hint">{t.serverTimingIs(record.server_timing)}</p>}
    </Section>
  )
}
