/**
 * Usage over time as stacked bars or as lines, with a legend that isolates a part, and a range that is chosen by dragging. The drawing is
 * hidden from screen readers, which read the table with the same numbers.
 */
import { useEffect, useMemo, useRef, useState } from "preact/hooks"
import UPlot from "uplot"
import { Chip } from "../../parts/Card.tsx"
import {
  compact,
  dayIn,
  dayOf,
  dayStart,
  duration,
  minuteOfDay,
  money,
  number,
  timeZone,
  utcDay,
  when,
  zoneName
} from "../../parts/format.ts"
import { useMedia } from "../../parts/layout.ts"
import { useStill } from "../../parts/still.ts"
import { themeAtom, zoneAtom } from "../../state/preferences.ts"
import { useAtom } from "../../state/registry.ts"
import { useTexts } from "../../state/texts.ts"
import { isLine, type MeasureName, type Part, type Stack, topsOf } from "./rows.ts"

/** The computed value of a colour of the style sheet. */
const colourOf = (element: HTMLElement, name: string): string => {
  const probe = document.createElement("span")
  probe.style.color = `var(${name})`
  element.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}

const height = 240

/** The day at midnight, else the time. */
const hourTick = (time: number): string => minuteOfDay(time) === "00:00" ? dayOf(time) : minuteOfDay(time)

/** The number of colours of parts in the style sheet; the last one is for the rest. */
const colours = 8

/** The colour of each part that is shown. One that was shown before keeps its own, whatever the chart shows of it. */
const useColours = (parts: ReadonlyArray<Part>) => {
  const known = useRef<ReadonlyMap<string, number>>(new Map())
  return useMemo(() => {
    const kept = new Map(parts.flatMap(({ value }): ReadonlyArray<[string, number]> => {
      const colour = value === undefined ? colours : known.current.get(value)
      return value === undefined || colour === undefined ? [] : [[value, colour]]
    }))
    for (const { value } of parts) {
      if (value === undefined || kept.has(value)) continue
      const taken = new Set(kept.values())
      for (let colour = 1; !kept.has(value); colour++) if (!taken.has(colour)) kept.set(value, colour)
    }
    known.current = kept
    return ({ value }: Part) => `--part-${value === undefined ? colours : kept.get(value) ?? colours}`
  }, [parts])
}

/** Identifies a part. */
const idOf = ({ value }: Part): string => value ?? "\u0000"

/** The text of a value, and a shorter one for the axis. */
const textsFor = (measure: MeasureName, currency: string | null) => {
  if (measure === "cost") {
    const text = (value: number) => money(String(value), currency)
    return { text, tick: text }
  }
  if (measure.endsWith("_ms")) return { text: duration, tick: duration }
  return { text: number, tick: compact }
}

/** Pixels from bar to bar with room for a line around each part. */
const leastPitch = 7

/** Chips of the legend that a small window shows at first. */
const chipsAtFirst = 3

export const Chart = ({ before, currency, measure, nameOf, onRange, stack, unit }: {
  readonly stack: Stack
  readonly unit: "hour" | "day"
  readonly measure: MeasureName
  readonly currency: string | null
  readonly nameOf: (part: Part) => string
  /** The time before, as a pale line over the bars. */
  readonly before: { readonly name: string; readonly values: ReadonlyArray<number | null> } | undefined
  /** Called with the chosen range, in Unix milliseconds. */
  readonly onRange: (from: number, to: number) => void
}) => {
  const t = useTexts().usage
  const theme = useAtom(themeAtom)
  const zone = useAtom(zoneAtom)
  const place = useRef<HTMLDivElement>(null)
  const chosen = useRef(onRange)
  chosen.current = onRange
  /** The part that alone is drawn. */
  const [isolated, setIsolated] = useState<string>()
  /** The place under the pointer. */
  const [pointed, setPointed] = useState<number>()
  /** A range is being chosen: a chart that is drawn anew would end that. */
  const [isDragged, setDragged] = useState(false)
  useEffect(() => {
    if (!isDragged) return
    const end = () => setDragged(false)
    addEventListener("mouseup", end)
    return () => removeEventListener("mouseup", end)
  }, [isDragged])
  const drawn = useRef("")
  // A reply with the same content leaves the chart, and what is hovered in it, as it is.
  const content = isDragged
    ? drawn.current
    : JSON.stringify([
      stack.times,
      stack.parts.map((part) => [nameOf(part), part.values, part.total]),
      before?.values
    ])
  drawn.current = content
  const whole = useMemo(() => ({ ...stack, before: before?.values }), [content])
  const partColour = useColours(whole.parts)
  const shown = useMemo(() => {
    const alone = whole.parts.filter((part) => idOf(part) === isolated)
    // The time before is known as a whole.
    return alone.length === 0 ? whole : { ...whole, parts: alone, before: undefined }
  }, [whole, isolated])
  const { text, tick } = textsFor(measure, currency)
  const legend = useStill<Part, HTMLDivElement>(whole.parts, idOf, [unit, measure])
  useEffect(() => {
    const element = place.current
    if (element === null) return
    const { before: earlier, parts, times } = shown
    const isLines = isLine(measure)
    const length = unit === "hour" ? 3600 : 24 * 3600
    const draw = () => {
      const line = colourOf(element, "--line")
      const surface = colourOf(element, "--surface")
      const axis: UPlot.Axis = {
        stroke: colourOf(element, "--muted"),
        grid: { stroke: line, width: 1 },
        ticks: { stroke: line, width: 1 },
        font: `12px ${getComputedStyle(element).fontFamily}`
      }
      const bars = UPlot.paths.bars?.({ size: [0.8, 40] })
      const stacked = (part: Part): UPlot.Series => ({
        fill: colourOf(element, partColour(part)),
        // Parts of a bar stand apart.
        stroke: surface,
        // Where a bar is hardly wider than that, it would be nothing else.
        width: element.clientWidth > times.length * leastPitch ? 1 : 0,
        points: { show: false },
        ...bars === undefined ? {} : { paths: bars }
      })
      return new UPlot(
        {
          width: element.clientWidth,
          height,
          legend: { show: false },
          cursor: { drag: { x: true, y: false, setScale: false }, points: { show: false } },
          scales: {
            // A bar is drawn around its time: the first and last ones need room.
            x: { time: true, range: (_, from, to) => [from - length / 2, to + length / 2] },
            y: { range: (_, __, most) => [0, Math.max(measure === "cost" ? 1e-6 : 1, most * 1.05)] }
          },
          tzDate: (seconds) => UPlot.tzDate(new Date(seconds * 1000), unit === "day" ? "UTC" : timeZone()),
          series: [
            {},
            ...isLines
              ? parts.map((part): UPlot.Series => ({ stroke: colourOf(element, partColour(part)), width: 2 }))
              : parts.toReversed().map(stacked),
            ...earlier === undefined
              ? []
              : [{ stroke: colourOf(element, "--edge"), width: 2, dash: [4, 4], points: { show: false } }]
          ],
          axes: [
            {
              ...axis,
              space: 70,
              size: 30,
              values: (_, splits) =>
                splits.map((seconds) => unit === "day" ? utcDay(seconds * 1000) : hourTick(seconds * 1000))
            },
            { ...axis, size: 72, values: (_, splits) => splits.map(tick) }
          ],
          hooks: {
            setCursor: [({ cursor }) => setPointed(cursor.idx ?? undefined)],
            // The running hour or day is not over: its bar is pale.
            draw: [(chart) => {
              const last = times.at(-1)
              const now = unit === "day" ? dayIn(Date.now()) / 1000 : Date.now() / 1000 - length
              if (last === undefined || last < now) return
              const left = chart.valToPos(last - length / 2, "x", true)
              const { ctx } = chart
              ctx.save()
              ctx.globalAlpha = 0.55
              ctx.fillStyle = surface
              ctx.fillRect(left, chart.bbox.top, chart.bbox.left + chart.bbox.width - left, chart.bbox.height)
              ctx.restore()
            }],
            setSelect: [(chart) => {
              const { left, width } = chart.select
              if (width < 4) return
              const at = (x: number) => Math.round((chart.posToVal(x, "x") + length / 2) / length) * length * 1000
              chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
              const [from, to] = [at(left), at(left + width)]
              const last = Math.max(to, from + length * 1000)
              if (unit === "day") chosen.current(dayStart(from), dayStart(last))
              else chosen.current(from, last)
            }]
          }
        },
        [
          [...times],
          ...isLines ? parts.map(({ values }) => [...values]) : topsOf(shown).map((values) => [...values]),
          ...earlier === undefined ? [] : [[...earlier]]
        ],
        element
      )
    }
    let chart = draw()
    const redraw = () => {
      chart.destroy()
      chart = draw()
    }
    const sizes = new ResizeObserver(() => chart.setSize({ width: element.clientWidth, height }))
    sizes.observe(element)
    const scheme = matchMedia("(prefers-color-scheme: dark)")
    scheme.addEventListener("change", redraw)
    return () => {
      scheme.removeEventListener("change", redraw)
      sizes.disconnect()
      chart.destroy()
    }
  }, [shown, unit, measure, currency, theme, zone, t])
  const time = pointed === undefined ? undefined : whole.times[pointed]
  const valueOf = ({ total, values }: Part): string => {
    const value = time === undefined ? total : values[pointed!]
    return value === undefined || value === null ? "" : text(value)
  }
  const isSmall = useMedia("(max-width: 699px)")
  const [unfolded, setUnfolded] = useState(false)
  const isFolded = isSmall && !unfolded && legend.shown.length > chipsAtFirst + 1
  const earlier = pointed === undefined ? undefined : before?.values[pointed]
  return (
    <div class="card chart">
      <div ref={place} aria-hidden="true" onMouseDown={() => setDragged(true)} />
      <div ref={legend.ref} class="actions" role="group" aria-label={t.legend}>
        {legend.shown.slice(0, isFolded ? chipsAtFirst : undefined).map((part) => {
          const id = idOf(part)
          return (
            <Chip key={id} pressed={id === isolated} onClick={() => setIsolated(id === isolated ? undefined : id)}>
              <span class="swatch" aria-hidden="true" style={{ background: `var(${partColour(part)})` }} />
              {nameOf(part)} <b class="number">{valueOf(part)}</b>
            </Chip>
          )
        })}
        {isSmall && legend.shown.length > chipsAtFirst + 1 && (
          <Chip onClick={() => setUnfolded(!unfolded)} aria-expanded={!isFolded}>
            {isFolded ? t.more(legend.shown.length - chipsAtFirst) : t.less}
          </Chip>
        )}
        {before !== undefined && isolated === undefined && (
          <span class="hint of-span">
            <span class="swatch dashed" aria-hidden="true" />
            {before.name} {earlier !== null && earlier !== undefined && <b class="number">{text(earlier)}</b>}
          </span>
        )}
        <span class="hint">
          {time === undefined ? zoneName() : unit === "hour" ? when(time * 1000) : utcDay(time * 1000)}
        </span>
      </div>
    </div>
  )
}
