/** The table of metrics in docs/reference/metrics.md, and the metrics of a scrape in the same form. */
import parsePrometheusTextFormat from "parse-prometheus-text-format"
import { pageText } from "./snippets.ts"

export interface DescribedMetric {
  readonly type: string
  /** Names, sorted. */
  readonly labels: ReadonlyArray<string>
  readonly meaning: string
}

/** The rows of docs/reference/metrics.md by name. */
export const metricsTable = (): ReadonlyMap<string, DescribedMetric> =>
  new Map(
    [
      ...pageText("docs/reference/metrics.md").matchAll(
        /^\| `(\w+)` \| (counter|gauge|histogram) \|(.*?)\| (.*?) \|$/gm
      )
    ].map(
      ([, name = "", type = "", labels = "", meaning = ""]) => [
        name,
        { type, meaning, labels: [...labels.matchAll(/`(\w+)`/g)].map(([, label = ""]) => label).sort() }
      ]
    )
  )

/** The metrics of scrapes by name, each with the labels of all its series. */
export const metricsOf = (scrapes: ReadonlyArray<string>): ReadonlyMap<string, DescribedMetric> => {
  const found = new Map<string, DescribedMetric>()
  for (const text of scrapes) {
    const series = [...text.matchAll(/^([a-z_]+)(?:\{(.*)\})? \S+$/gm)]
    for (const { help, name, type } of parsePrometheusTextFormat(text)) {
      const own = series.filter(([, of = ""]) => of === name || of.replace(/_(?:bucket|sum|count)$/, "") === name)
      const labels = own.flatMap(([, , text = ""]) => [...text.matchAll(/(\w+)="/g)].map(([, label = ""]) => label))
        .filter((label) => label !== "le" && label !== "quantile")
      const before = found.get(name)?.labels ?? []
      found.set(name, {
        type: type.toLowerCase(),
        meaning: help,
        labels: [...new Set([...before, ...labels])].sort()
      })
    }
  }
  return found
}
