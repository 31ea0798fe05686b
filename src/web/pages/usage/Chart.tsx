/**
 * The chart of requests and tokens over time. It is hidden from screen readers, which read the table with the same numbers.
 */
import { useEffect, useRef } from "preact/hooks"
import UPlot from "uplot"
import { themeAtom, useTexts } from "../../state/preferences.ts"
import { useAtom } from "../../state/registry.ts"
import { seriesOf, type Usage } from "./rows.ts"

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

export const Chart = ({ group, reply }: { readonly reply: Usage; readonly group: "hour" | "day" }) => {
  const t = useTexts().usage
  const theme = useAtom(themeAtom)
  const place = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const element = place.current
    if (element === null) return
    const series = seriesOf(reply, group)
    const draw = () => {
      const muted = colourOf(element, "--muted")
      const line = colourOf(element, "--line")
      const axis = {
        stroke: muted,
        grid: { stroke: line, width: 1 },
        ticks: { stroke: line, width: 1 },
        font: "12px system-ui, sans-serif"
      }
      return new UPlot(
        {
          width: element.clientWidth,
          height,
          cursor: { drag: { x: false, y: false } },
          legend: { live: false },
          scales: {
            x: { time: true },
            tokens: { range: (_, __, most) => [0, Math.max(1, most)] },
            y: { range: (_, __, most) => [0, Math.max(1, most * 1.05)] }
          },
          tzDate: (seconds) => UPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
          series: [
            {},
            {
              label: t.requests,
              stroke: colourOf(element, "--accent"),
              fill: colourOf(element, "--accent-ground"),
              width: 2,
              points: { show: series[0].length < 60 }
            },
            {
              label: t.total,
              scale: "tokens",
              stroke: colourOf(element, "--good"),
              width: 2,
              dash: [6, 4],
              points: { show: false }
            }
          ],
          axes: [axis, axis, { ...axis, scale: "tokens", side: 1, grid: { show: false }, size: 70 }]
        },
        series,
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
  }, [reply, group, theme, t])
  return (
    <div class="card chart" aria-hidden="true">
      <div ref={place} />
    </div>
  )
}
