/**
 * Draws the samples of a soak: memory, use and delay over time, as one SVG without any script.
 */
import { type Rest, sumOf } from "./verdicts.ts"
import type { Sample } from "./watch.ts"

interface Line {
  readonly name: string
  readonly colour: string
  readonly points: ReadonlyArray<readonly [x: number, y: number]>
  readonly dots?: boolean
}

interface Panel {
  readonly title: string
  readonly lines: ReadonlyArray<Line>
}

const width = 960
const height = 220
const margin = { left: 64, right: 16, top: 34, bottom: 26 }

const rounded = (value: number): string => value >= 100 ? value.toFixed(0) : value.toFixed(1)

const drawPanel = ({ lines, title }: Panel, top: number, seconds: number): string => {
  const most = Math.max(1e-9, ...lines.flatMap(({ points }) => points.map(([, y]) => y))) * 1.05
  const x = (at: number): string => (margin.left + at / seconds * (width - margin.left - margin.right)).toFixed(1)
  const y = (value: number): string =>
    (top + height - margin.bottom - value / most * (height - margin.top - margin.bottom)).toFixed(1)
  const grid = [0, 0.25, 0.5, 0.75, 1].map((share) =>
    `<line x1="${margin.left}" x2="${width - margin.right}" y1="${y(most * share)}" y2="${
      y(most * share)
    }" stroke="#ddd"/><text x="${margin.left - 6}" y="${y(most * share)}" dy="4" text-anchor="end">${
      rounded(most * share)
    }</text>`
  )
  const drawn = lines.map(({ colour, dots, points }) =>
    dots === true
      ? points.map(([at, value]) => `<circle cx="${x(at)}" cy="${y(value)}" r="3" fill="${colour}"/>`).join("")
      : `<polyline fill="none" stroke="${colour}" points="${
        points.map(([at, value]) => `${x(at)},${y(value)}`).join(" ")
      }"/>`
  )
  const legend = lines.map(({ colour, name }, i) =>
    `<text x="${margin.left + 150 + i * 150}" y="${top + 20}" fill="${colour}">${name}</text>`
  )
  const ends = `<text x="${margin.left}" y="${top + height - 8}">0 min</text><text x="${width - margin.right}" y="${
    top + height - 8
  }" text-anchor="end">${(seconds / 60).toFixed(1)} min</text>`
  return `<text x="${margin.left}" y="${top + 20}" font-weight="bold">${title}</text>${grid.join("")}${drawn.join("")}${
    legend.join("")
  }${ends}`
}

const mega = 1024 * 1024

/** The plot. */
export const plotOf = (samples: ReadonlyArray<Sample>, rests: ReadonlyArray<Rest>): string => {
  // The queue is unknown while the store is lost.
  const over = (of: (sample: Sample) => number) =>
    samples.map((sample) => [sample.at, of(sample)] as const).filter(([, value]) => Number.isFinite(value))
  const panels: ReadonlyArray<Panel> = [
    {
      title: "Memory, MB",
      lines: [
        { name: "RSS", colour: "#1f77b4", points: over(({ rss }) => rss / mega) },
        { name: "heap in use", colour: "#999", points: over(({ heap }) => heap / mega) },
        {
          name: "heap after GC",
          colour: "#d62728",
          points: rests.map(({ at, processes }) => [at, sumOf(processes, "heap") / mega]),
          dots: true
        }
      ]
    },
    {
      title: "Use",
      lines: [
        { name: "active requests", colour: "#1f77b4", points: over(({ active }) => active) },
        { name: "slots in use", colour: "#2ca02c", points: over(({ inUse }) => inUse) },
        { name: "waiting", colour: "#ff7f0e", points: over(({ waiting }) => waiting) },
        { name: "upstream calls", colour: "#9467bd", points: over(({ upstream }) => upstream) }
      ]
    },
    {
      title: "Loop delay p99, ms",
      lines: [{ name: "each second", colour: "#d62728", points: over(({ delay }) => delay) }]
    }
  ]
  const seconds = Math.max(1, ...samples.map(({ at }) => at), ...rests.map(({ at }) => at))
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${
    height * panels.length
  }" font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>${
    panels.map((panel, i) => drawPanel(panel, i * height, seconds)).join("")
  }</svg>\n`
}
