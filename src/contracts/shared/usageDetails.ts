/** What usage bodies of all families say beside counts: service tiers, words that decide factors, and the server's own cost. */
import { roundDecimal } from "../../domain/decimal.ts"
import { isRecord, type JsonRecord } from "../../domain/json.ts"
import { mostServerCost, type UsageDetails } from "../../domain/units.ts"
import { asCount, asString } from "./json.ts"

/** Names of the base tier. The vendors document each: `default` and `auto`, `standard` and `standard_only`, `on_demand`, `unspecified`. */
const baseTiers: ReadonlySet<string> = new Set([
  "auto",
  "default",
  "on_demand",
  "standard",
  "standard_only",
  "unspecified"
])

/** Characters of a tier, a word or a tool, and the number of words and tools of a usage that are kept. */
const [longestWord, mostWords] = [64, 16]

/** Begins with a letter, unlike a number that is written as a text. */
const isWord = (value: string): boolean => value.length <= longestWord && /^[a-z]/i.test(value)

/** The service tier that a reply names, in lower case; `undefined` for the base. */
export const tierOf = (tier: unknown): string | undefined => {
  const name = asString(tier)?.trim().toLowerCase()
  return name === undefined || !isWord(name) || baseTiers.has(name) ? undefined : name
}

/** Fields of a usage body that are no words. */
const otherFields: ReadonlySet<string> = new Set(["service_tier", "serviceTier", "cost", "type"])

/** The fields whose values are words; `undefined` without any. */
export const wordsOf = (usage: JsonRecord): UsageDetails["words"] => {
  let words: Record<string, string> | undefined
  let count = 0
  for (const field in usage) {
    const value = usage[field]
    if (typeof value !== "string" || !isWord(value) || !isWord(field) || otherFields.has(field)) continue
    if (++count > mostWords) break
    words ??= {}
    words[field] = value
  }
  return words
}

/** The calls of tools that are not 0; `undefined` without any. */
export const toolCallsOf = (counts: Iterable<readonly [tool: string, calls: unknown]>): UsageDetails["toolCalls"] => {
  let calls: Record<string, number> | undefined
  let tools = 0
  for (const [tool, value] of counts) {
    const count = asCount(value) ?? 0
    if (count === 0 || !isWord(tool) || ++tools > mostWords) continue
    calls ??= {}
    calls[tool] = count
  }
  return calls
}

/** An amount of 10^-18; `undefined` for a value that is no decimal number of at least 0. */
const finely = (value: unknown): bigint | undefined =>
  typeof value === "number" || typeof value === "string" ? roundDecimal(value, 9) : undefined

const finer = 10n ** 9n

/**
 * What the server itself charges, in US dollars of 10^-9; `undefined` if it does not say so.
 *
 * OpenRouter: `cost`, and with `is_byok` `cost_details.upstream_inference_cost`, which the vendor charges beside it
 * (https://openrouter.ai/docs/use-cases/usage-accounting). Perplexity: `cost.total_cost`. xAI: `cost_in_usd_ticks`, of which a dollar has
 * 10^10 (https://docs.x.ai/developers/cost-tracking).
 */
export const serverCostOf = (usage: JsonRecord): bigint | undefined => {
  const { cost, cost_details: details, cost_in_usd_ticks: ticks, is_byok: isByok } = usage
  const own = finely(isRecord(cost) ? cost["total_cost"] : cost)
  if (own === undefined) {
    return typeof ticks === "number" || typeof ticks === "string" ? roundDecimal(ticks, -10) : undefined
  }
  const vendors = isByok === true && isRecord(details) ? finely(details["upstream_inference_cost"]) ?? 0n : 0n
  return (own + vendors + finer / 2n) / finer
}

/** What the server charges, as far as a reply can cost that; `undefined` for a server that names no cost. */
export const chargedBy = (usage: JsonRecord): Pick<UsageDetails, "isCostRefused" | "serverCost"> | undefined => {
  const serverCost = serverCostOf(usage)
  return serverCost === undefined ? undefined : serverCost <= mostServerCost ? { serverCost } : { isCostRefused: true }
}

/** Details without those that say nothing; `undefined` if none is left. */
export const saidDetails = (details: UsageDetails): UsageDetails | undefined => {
  let said: Record<string, unknown> | undefined
  for (const [name, value] of Object.entries(details)) {
    if (value === undefined || value === 0) continue
    said ??= {}
    said[name] = value
  }
  return said as UsageDetails | undefined
}
