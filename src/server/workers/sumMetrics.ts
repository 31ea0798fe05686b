/**
 * The sum of metrics in the Prometheus text format: what the workers of a machine count together.
 */

/** How the values of a gauge at several workers become one. */
export type GaugeRule = "sum" | "largest" | "smallest"

/** One family: its comment lines, its type, and its samples by name and labels. */
interface Family {
  readonly comments: ReadonlyArray<string>
  readonly type: string
  readonly samples: Map<string, number>
}

const rules: Readonly<Record<GaugeRule, (a: number, b: number) => number>> = {
  sum: (a, b) => a + b,
  largest: Math.max,
  smallest: Math.min
}

/** Splits a sample into its name with labels and its value. Labels may contain blanks; a value does not. */
const sample = (line: string): readonly [key: string, value: number] => {
  const at = line.lastIndexOf(" ")
  return [line.slice(0, at), Number(line.slice(at + 1))]
}

const familiesOf = (text: string): ReadonlyMap<string, Family> => {
  const families = new Map<string, Family>()
  let comments: Array<string> = []
  let samples = new Map<string, number>()
  for (const line of text.split("\n")) {
    if (line.startsWith("# HELP ")) comments = [line]
    else if (line.startsWith("# TYPE ")) {
      const [, , name = "", type = "untyped"] = line.split(" ")
      samples = new Map()
      families.set(name, { comments: [...comments, line], type, samples })
      comments = []
    } else if (line !== "") samples.set(...sample(line))
  }
  return families
}

const isCounted = (type: string): boolean => type === "counter" || type === "histogram"

const valueText = (value: number): string =>
  value === Number.POSITIVE_INFINITY ? "+Inf" : value === Number.NEGATIVE_INFINITY ? "-Inf" : String(value)

const format = (families: Iterable<Family>): string =>
  [...families].flatMap(({ comments, samples }) => [
    ...comments,
    ...Array.from(samples, ([key, value]) => `${key} ${valueText(value)}`)
  ]).join("\n")

/**
 * Adds the metrics of workers. Counters and histograms add; the HELP line of a gauge ends with the rule that combines its values.
 * `ended` are the counters of workers that no longer run: without them a sum would fall, which a collector takes for a
 * restart. Linear in the length of the texts.
 */
export const sumMetrics = (
  texts: ReadonlyArray<string>,
  ruleOf: (gauge: string) => GaugeRule,
  ended = ""
): string => {
  const sum = new Map<string, Family>()
  for (const text of [...texts, ended]) {
    for (const [name, { comments, samples, type }] of familiesOf(text)) {
      const rule = isCounted(type) ? "sum" : ruleOf(name)
      const combine = rules[rule]
      let family = sum.get(name)
      if (family === undefined) {
        const named = isCounted(type) ?
          comments :
          comments.map((line) =>
            line.startsWith("# HELP ") ? `${line} (${rule === "sum" ? "sum" : `${rule} value`} of the workers)` : line
          )
        family = { comments: named, type, samples: new Map() }
        sum.set(name, family)
      }
      for (const [key, value] of samples) {
        const before = family.samples.get(key)
        family.samples.set(key, before === undefined ? value : combine(before, value))
      }
    }
  }
  const text = format(sum.values())
  return text === "" ? "" : `${text}\n`
}

/** The counters and histograms of metrics, which remain when their worker ends. */
export const countersOf = (texts: ReadonlyArray<string>): string => {
  const families = familiesOf(sumMetrics(texts, () => "sum"))
  const text = format([...families.values()].filter(({ type }) => isCounted(type)))
  return text === "" ? "" : `${text}\n`
}
