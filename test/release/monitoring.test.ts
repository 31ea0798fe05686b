/** The alert rules and the dashboard use only metrics and labels that there are. */
import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import path from "node:path"
import * as YAML from "yaml"
import { type DescribedMetric, metricsTable } from "../support/metricsTable.ts"

const packaging = path.join(import.meta.dirname, "../../packaging")
const text = (file: string): string => readFileSync(path.join(packaging, file), "utf8")

const described = metricsTable()

/** Labels that a collector adds. */
const added = ["job", "instance"]

const words = new Set(
  "sum min max count by without rate increase histogram_quantile topk label_values on ignoring and or unless".split(" ")
)

/** The metric of a series: a histogram has three. */
const metricOf = (name: string): DescribedMetric | undefined => {
  const own = described.get(name)
  if (own !== undefined) return own.type === "histogram" ? undefined : own
  const [, base = "", part] = /^(.*)_(bucket|sum|count)$/.exec(name) ?? []
  const histogram = described.get(base)
  if (histogram?.type !== "histogram") return undefined
  return part === "bucket" ? { ...histogram, labels: [...histogram.labels, "le"] } : histogram
}

/** What is wrong with the names in an expression. */
const faultsOf = (expression: string): ReadonlyArray<string> => {
  const plain = expression.replaceAll(/"(?:[^"\\]|\\.)*"/g, "\"\"").replaceAll(/\[[^\]]*\]/g, "")
  const labels: Array<string> = []
  const rest = plain
    .replaceAll(/\{([^}]*)\}/g, (_, inside: string) => {
      labels.push(...[...inside.matchAll(/([a-z_]\w*)\s*(?:=~|!~|!=|=)/g)].map(([, label = ""]) => label))
      return ""
    })
    .replaceAll(/\b(?:by|without|on|ignoring)\s*\(([^)]*)\)/g, (_, inside: string) => {
      labels.push(...inside.split(",").map((label) => label.trim()))
      return ""
    })
    .replace(/(label_values\([^,]*),([^)]*)\)/, (_, call: string, label: string) => {
      labels.push(label.trim())
      return `${call})`
    })
  const names = [...rest.matchAll(/\b[a-z_]\w*/gi)].map(([name]) => name).filter((name) => !words.has(name))
  const known = names.flatMap((name) => metricOf(name)?.labels ?? [])
  return [
    ...names.length === 0 ? ["no metric"] : [],
    ...names.filter((name) => metricOf(name) === undefined),
    ...labels.filter((label) => !known.includes(label) && !added.includes(label))
  ]
}

/** The names in braces of a legend or a text. */
const shownLabels = (template: string, form: RegExp): ReadonlyArray<string> =>
  [...template.matchAll(form)].map(([, label = ""]) => label)

/** The labels that an expression keeps. */
const keptLabels = (expression: string): ReadonlyArray<string> =>
  [...expression.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, inside = ""]) => inside.split(", "))

describe("the check of expressions", () => {
  it("finds a wrong metric, a wrong label and a histogram without a part", () => {
    assert.deepEqual(faultsOf("sum by (model) (rate(gateway_requests_total{status=\"200\"}[5m])) > 0.5"), [])
    assert.deepEqual(faultsOf("sum(gateway_nothing)"), ["gateway_nothing"])
    assert.deepEqual(faultsOf("sum by (color) (gateway_requests_total{size=\"1\"})"), ["size", "color"])
    assert.deepEqual(faultsOf("gateway_queue_wait_seconds"), ["gateway_queue_wait_seconds"])
    assert.deepEqual(faultsOf("sum by (le) (gateway_queue_length)"), ["le"])
    assert.deepEqual(faultsOf("1 > 2"), ["no metric"])
  })
})

describe("the alert rules", () => {
  const { groups } = YAML.parse(text("prometheus/alerts.yaml")) as {
    readonly groups: ReadonlyArray<{
      readonly rules: ReadonlyArray<{
        readonly alert: string
        readonly expr: string
        readonly labels: Readonly<Record<string, string>>
        readonly annotations: Readonly<Record<string, string>>
      }>
    }>
  }
  const rules = groups.flatMap((group) => group.rules)

  it("use metrics and labels that there are, and say what to do", () => {
    assert.isAbove(rules.length, 5)
    assert.lengthOf(new Set(rules.map(({ alert }) => alert)), rules.length)
    for (const { alert, annotations, expr, labels } of rules) {
      assert.deepEqual(faultsOf(expr), [], alert)
      assert.hasAllKeys(annotations, ["summary", "description"], alert)
      assert.include(["critical", "warning", "info"], labels["severity"], alert)
      const shown = shownLabels(Object.values(annotations).join(" "), /\$labels\.(\w+)/g)
      assert.includeMembers([...keptLabels(expr)], [...shown], alert)
    }
  })
})

describe("the dashboard", () => {
  const dashboard = JSON.parse(text("grafana/model-gateway.json")) as {
    readonly templating: { readonly list: ReadonlyArray<{ readonly name: string; readonly definition?: string }> }
    readonly panels: ReadonlyArray<{
      readonly id: number
      readonly title: string
      readonly type: string
      readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
      readonly targets?: ReadonlyArray<{ readonly expr: string; readonly legendFormat: string }>
    }>
  }
  const { panels, templating } = dashboard

  it("uses metrics, labels and variables that there are", () => {
    const variables = [...templating.list.map(({ name }) => name), "__rate_interval", "__all"]
    for (const [, name = ""] of JSON.stringify(dashboard).matchAll(/\$\{?(\w+)/g)) assert.include(variables, name)
    for (const { definition } of templating.list) {
      if (definition !== undefined) assert.deepEqual(faultsOf(definition), [])
    }
    for (const { targets = [], title, type } of panels) {
      assert.strictEqual(targets.length === 0, type === "row", title)
      for (const { expr, legendFormat } of targets) {
        assert.deepEqual(faultsOf(expr), [], title)
        assert.includeMembers([...keptLabels(expr)], [...shownLabels(legendFormat, /\{\{(\w+)\}\}/g)], title)
      }
    }
  })

  it("has panels that do not overlap", () => {
    assert.lengthOf(new Set(panels.map(({ id }) => id)), panels.length)
    const cells = panels.flatMap(({ gridPos: { h, w, x, y } }) =>
      Array.from({ length: w * h }, (_, i) => `${x + (i % w)} ${y + Math.floor(i / w)}`)
    )
    assert.lengthOf(new Set(cells), cells.length)
    for (const { gridPos: { w, x } } of panels) assert.isAtMost(x + w, 24)
  })
})
