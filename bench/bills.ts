/** The cost of a bill: one pass over the units that a try has used. */
import { billOf } from "../src/domain/bill.ts"
import { plainPrice, type Price } from "../src/domain/prices.ts"
import { pieceUnits, tokenUnits, type Usage } from "../src/domain/units.ts"
import { type Row, table } from "./table.ts"

const plain: Usage = { promptTokens: 2_000, completionTokens: 300, reasoningTokens: 0, cachedTokens: 1_500 }

/** A usage of every unit. */
const full: Usage = {
  ...plain,
  reasoningTokens: 100,
  cacheWriteTokens: 200,
  details: {
    cacheWrite1hTokens: 100,
    audioTokens: 100,
    imageTokens: 100,
    cachedAudioTokens: 10,
    cachedImageTokens: 10,
    audioOutputTokens: 10,
    imageOutputTokens: 10,
    pieces: Object.fromEntries(pieceUnits.map((unit) => [unit, 2])),
    toolCalls: { web_search: 2, code_interpreter: 1 },
    tier: "flex",
    words: { speed: "fast" }
  }
}

const units = new Map([...tokenUnits, ...pieceUnits, "per_tool_call.web_search"].map((unit) => [unit, 3_000_000_000n]))
const ofFew = plainPrice(
  new Map([["input", 3_000_000_000n], ["cached_input", 300_000_000n], ["output", 15_000_000_000n]])
)
const ofAll: Price = {
  listed: undefined,
  units,
  above: [{ tokens: 1_000, units: new Map([["input", 6_000_000_000n]]) }],
  tiers: new Map([["flex", { units: new Map([["output", 7_000_000_000n]]), above: [] }]]),
  factors: new Map([["speed", new Map([["fast", 2_000_000_000n]])]])
}

/** CPU microseconds of a bill: the best of several rounds. */
const cost = (price: Price, usage: Usage): number => {
  const times = 100_000
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < 7; round++) {
    const began = process.cpuUsage()
    for (let i = 0; i < times; i++) {
      billOf(price, usage, { currency: undefined, preferred: undefined, isUnpriced: false })
    }
    const { system, user } = process.cpuUsage(began)
    best = Math.min(best, (user + system) / times)
  }
  return best
}

/** Prints the table. */
export const billsBench = (): Promise<void> => {
  const figures: ReadonlyArray<Row> = [
    ["a bill of plain tokens", cost(ofFew, plain), "CPU µs"],
    ["a bill of all units, with a step, a tier and a factor", cost(ofAll, full), "CPU µs"]
  ]
  process.stdout.write(`${table(["", "value", "unit"], figures)}\n`)
  return Promise.resolve()
}
