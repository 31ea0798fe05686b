/**
 * The chart of usage over time: stacked bars with their values below, and a range that is chosen by dragging. It is hidden from
 * screen readers, which read the table with the same numbers.
 */
import { useEffect, useMemo, useRef } from "preact/hooks"
import UPlot from "uplot"
import {
  compact,
  dayIn,
  dayOf,
  dayStart,
  minuteOfDay,
  money,
  number,
  timeZone,
  utcDay,
  when,
  zoneName
} from "../../parts/format.ts"
import { themeAtom, useTexts, zoneAtom } from "../../state/preferences.ts"
import { useAtom } from "../../state/registry.ts"
import { type MeasureName, type Part, type Stack, topsOf } from "./rows.ts"

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

export const Chart = ({ currency, measure, nameOf, onRange, stack, unit }: {
  readonly stack: Stack
  readonly unit: "hour" | "day"
  readonly measure: MeasureName
  readonly currency: string | null
  readonly nameOf: (part: Part) => string
  /** Called with the chosen range, in Unix milliseconds. */
  readonly onRange: (from: number, to: number) => void
}) => {
  const t = useTexts().usage
  const theme = useAtom(themeAtom)
  const zone = useAtom(zoneAtom)
  const place = useRef<HTMLDivElement>(null)
  const chosen = useRef(onRange)
  chosen.current = onRange
  // A reply with the same content leaves the chart, and what is hovered in it, as it is.
  const content = JSON.stringify([stack.times, stack.parts.map((part) => [nameOf(part), part.values])])
  const shown = useMemo(() => stack, [content])
  useEffect(() => {
    const element = place.current
    if (element === null) return
    const valueText = (value: number): string => measure === "cost" ? money(String(value), currency) : number(value)
    const tickText = (value: number): string => measure === "cost" ? money(String(value), currency) : compact(value)
    const { parts, times } = shown
    const length = unit === "hour" ? 3600 : 24 * 3600
    const timeOf = (seconds: number) => unit === "hour" ? when(seconds * 1000) : utcDay(seconds * 1000)
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
      const colour = (index: number) =>
        colourOf(element, `--part-${parts[index]?.value === undefined ? colours : index + 1}`)
      return new UPlot(
        {
          width: element.clientWidth,
          height,
          cursor: { drag: { x: true, y: false, setScale: false }, points: { show: false } },
          scales: {
            // A bar is drawn around its time: the first and last ones need room.
            x: { time: true, range: (_, from, to) => [from - length / 2, to + length / 2] },
            y: { range: (_, __, most) => [0, Math.max(measure === "cost" ? 1e-6 : 1, most * 1.05)] }
          },
          tzDate: (seconds) => UPlot.tzDate(new Date(seconds * 1000), unit === "day" ? "UTC" : timeZone()),
          series: [
            {
              label: zoneName(),
              value: (_, seconds) => typeof seconds !== "number" ? "–" : timeOf(seconds)
            },
            ...topsOf(shown).map((_, drawn): UPlot.Series => {
              const index = parts.length - 1 - drawn
              return {
                label: nameOf(parts[index]!),
                fill: colour(index),
                stroke: colour(index),
                width: 0,
                points: { show: false },
                ...bars === undefined ? {} : { paths: bars },
                value: (__, ___, ____, at) => {
                  const value = typeof at !== "number" ? undefined : parts[index]!.values[at]
                  return value === undefined ? "–" : valueText(value)
                }
              }
            })
          ],
          axes: [
            {
              ...axis,
              space: 70,
              values: (_, splits) =>
                splits.map((seconds) => unit === "day" ? utcDay(seconds * 1000) : hourTick(seconds * 1000))
            },
            { ...axis, size: 64, values: (_, splits) => splits.map(tickText) }
          ],
          hooks: {
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
        [[...times], ...topsOf(shown).map((values) => [...values])],
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
  return (
    <div class="card chart" aria-hidden="true">
      <div ref={place} />
    </div>
  )
}
