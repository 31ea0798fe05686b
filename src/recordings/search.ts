/**
 * Searches the ring of records: which of them match a filter, pages of a list, and counts for each facet.
 *
 * One pass over the ring, whose size `requests.limit` bounds, in slices. A text is searched in at most `searchedBytes` of bodies in one
 * call, newest first; a page then ends early, and the next one goes on.
 */
import { parseDecimal } from "../domain/decimal.ts"
import { type Cooperative, Slice } from "../domain/stream/cooperative.ts"
import { upstreamNamed } from "../domain/upstreamNames.ts"
import { showConversation } from "./conversation.ts"
import { cutFrames } from "./frames.ts"
import { assembleReply } from "./recordedReply.ts"
import { redactText } from "./redactRound.ts"
import type { RequestRecord } from "./RequestRecord.ts"
import type { RequestSort } from "./requestSorts.ts"

/** The most bytes of bodies that one call searches: a quarter of a second of work, while a question to other nodes waits for one. */
const searchedBytes = 16 * 1024 * 1024

/** The most values of a facet. */
const mostValues = 50

/** The most values of a facet that a node counts for the others; beyond them, rare values may be missing. */
const mostCounted = 1_000

/** Milliseconds that the facet `slow` counts by. */
const slowSteps = [1_000, 3_000, 10_000, 30_000, 100_000].map((step) => [step, String(step)] as const)

/** The value of a record in a sorted list; `undefined` while it is unknown. A cost is compared to about 16 digits. */
const sortValues: { readonly [Name in RequestSort]: (record: RequestRecord) => number | undefined } = {
  started_at: ({ startedAt }) => startedAt,
  duration_ms: ({ duration, endedAt }) => endedAt === undefined ? undefined : duration,
  first_event_ms: ({ facts: { firstEventAt, startedAt } }) =>
    firstEventAt === undefined ? undefined : Math.max(0, firstEventAt - startedAt),
  cost: ({ facts: { cost } }) => cost === undefined || cost === null ? undefined : Number(cost),
  total_tokens: ({ facts: { usage } }) => usage === undefined ? undefined : usage.promptTokens + usage.completionTokens
}

/** The order of a sorted list. Unknown values come last in both directions, and the newer of two equal ones first. */
export interface RequestOrder {
  readonly sort: RequestSort
  readonly order: "asc" | "desc"
}

/** The place of a record in a sorted list: greater ranks come first, then greater numbers. */
export type SortedPlace = readonly [rank: number, number: number]

/** The rank of unknown values. */
const lastRank = -Number.MAX_VALUE

const isBehind = ([rank, number]: SortedPlace, [rank2, number2]: SortedPlace): boolean =>
  rank < rank2 || (rank === rank2 && number < number2)

/** What the search knows beside the records. */
export interface SearchContext {
  /** The name of a key by its id. */
  readonly keyName: (id: string) => string | undefined
  /** Texts that a search must not find, beside the credentials of each record. */
  readonly secrets: ReadonlyArray<string>
  /** The most bytes of bodies that one call searches; `searchedBytes` by default. */
  readonly mostBytes?: number | undefined
}

/** A facet: the values of a record, and the records that its filter matches. */
interface FacetRule {
  readonly filter: string
  /** Counts each value of a record. It runs for every record and facet, and allocates nothing. */
  readonly count: (record: RequestRecord, add: (value: string | undefined) => void) => void
  readonly fitting: (wanted: string, context: SearchContext) => (record: RequestRecord) => boolean
}

/** Matches a part of a value in any case; a text in double quotes matches exactly that value. */
const matching = (wanted: string): (value: string | undefined) => boolean => {
  if (wanted.length > 1 && wanted.startsWith("\"") && wanted.endsWith("\"")) {
    const exact = wanted.slice(1, -1)
    return (value) => value === exact
  }
  const part = wanted.toLowerCase()
  return (value) => value !== undefined && value.toLowerCase().includes(part)
}

type ValueOf = (record: RequestRecord) => string | undefined

/** A facet of a value and, if it differs, of another one. Its filter matches a part of either. */
const anyPart = (filter: string, value: ValueOf, other: ValueOf = value): FacetRule => ({
  filter,
  count: (record, add) => {
    const first = value(record)
    const second = other(record)
    add(first)
    if (second !== first) add(second)
  },
  fitting: (wanted) => {
    const fits = matching(wanted)
    return (record) => fits(value(record)) || fits(other(record))
  }
})

const exactly = (filter: string, value: ValueOf): FacetRule => ({
  filter,
  count: (record, add) => add(value(record)),
  fitting: (wanted) => (record) => value(record) === wanted
})

/** The upstream of the last try; `undefined` before it. */
const upstreamOf = ({ facts }: RequestRecord): string | undefined =>
  facts.target?.upstream ??
    (facts.attempts === 0 ? undefined : facts.tries?.at(-1)?.upstream ?? upstreamNamed(undefined))

const facetRules = {
  key: {
    filter: "key",
    count: ({ key }, add) => add(key),
    fitting: (wanted, { keyName }) => {
      const fits = matching(wanted)
      return ({ key }) => fits(key) || fits(keyName(key))
    }
  },
  model: anyPart("model", ({ facts }) => facts.requestedModel, ({ facts }) => facts.model),
  style: exactly("style", ({ facts }) => facts.style),
  app: exactly("app", ({ facts }) => facts.identity?.shown.app),
  session: exactly("session", ({ facts }) => facts.identity?.shown.session),
  upstream: exactly("upstream", upstreamOf),
  account: anyPart("account", ({ account }) => account),
  outcome: exactly("outcome", ({ outcome }) => outcome),
  code: anyPart("code", ({ facts }) => facts.error),
  prompt_cache: {
    filter: "prompt_cache",
    count: ({ facts }, add) => add(facts.promptCache?.reason),
    fitting: (wanted) => ({ facts: { promptCache } }) =>
      promptCache?.result === wanted || promptCache?.reason === wanted
  },
  slow: {
    filter: "min_ms",
    count: ({ duration }, add) => {
      for (const [step, text] of slowSteps) if (duration >= step) add(text)
    },
    fitting: (wanted) => ({ duration }) => duration >= Number(wanted)
  }
} as const satisfies Readonly<Record<string, FacetRule>>

export type FacetName = keyof typeof facetRules

export const facetNames = Object.keys(facetRules) as ReadonlyArray<FacetName>

/**
 * The filters of a list by name, none of them empty: `status`, `from` and `to` (Unix milliseconds), `text`, and those of the facets.
 * They are texts, since nodes send them to each other.
 */
export type RequestFilter = { readonly [name: string]: string | undefined }

const isStatus = (record: RequestRecord, wanted: string): boolean => {
  const { status } = record.facts
  if (/^\dxx$/.test(wanted)) return String(status ?? "").startsWith(wanted[0]!)
  return /^\d+$/.test(wanted) ? String(status) === wanted : record.outcome === wanted
}

/** A filter that is ready to be used on many records. */
export class Matcher {
  readonly slice = new Slice()
  /** Bytes of bodies that were searched. */
  #searched = 0
  readonly #context: SearchContext
  readonly #facets: ReadonlyArray<readonly [name: FacetName, fits: (record: RequestRecord) => boolean]>
  readonly #status: string | undefined
  readonly #from: number
  readonly #to: number
  readonly #leastCost: bigint | undefined
  readonly #words: string | undefined

  constructor(filter: RequestFilter, context: SearchContext) {
    this.#context = context
    this.#status = filter["status"]
    this.#from = Number(filter["from"] ?? -Infinity)
    this.#to = Number(filter["to"] ?? Infinity)
    const leastCost = filter["cost_from"]
    this.#leastCost = leastCost === undefined ? undefined : parseDecimal(leastCost)
    this.#words = filter["text"]?.toLowerCase()
    this.#facets = facetNames.flatMap((name) => {
      const rule: FacetRule = facetRules[name]
      const wanted = filter[rule.filter]
      return wanted === undefined ? [] : [[name, rule.fitting(wanted, context)] as const]
    })
  }

  /** The facet whose filter alone does not match; `all` if every filter does, and `undefined` if the record does not match otherwise. */
  missed(record: RequestRecord): FacetName | "all" | undefined {
    const { startedAt } = record
    if (startedAt < this.#from || startedAt >= this.#to) return undefined
    if (this.#status !== undefined && !isStatus(record, this.#status)) return undefined
    if (this.#leastCost !== undefined && (record.facts.cost ?? -1n) < this.#leastCost) return undefined
    let missed: FacetName | "all" = "all"
    for (const [name, fits] of this.#facets) {
      if (fits(record)) continue
      if (missed !== "all") return undefined
      missed = name
    }
    return missed
  }

  /** True after the work of one call. */
  get isSpent(): boolean {
    return this.#searched >= (this.#context.mostBytes ?? searchedBytes)
  }

  /** True if the text is in the conversation, the reply or the error's sentence. */
  *holds(record: RequestRecord): Cooperative<boolean> {
    const words = this.#words
    if (words === undefined) return true
    if (this.#finds(record, record.facts.errorMessage ?? "", words)) return true
    const { conversation } = record
    if (conversation === undefined) {
      if (this.#findsRaw(record, record.body.text, words)) return true
    } else {
      for (const { calls, text } of showConversation(conversation)) {
        if (this.slice.add(1, text.length)) yield this.slice.end()
        if (this.#finds(record, text, words)) return true
        if (calls.some((call) => this.#finds(record, call.arguments, words))) return true
      }
    }
    const { reply } = record
    if (reply === undefined) return false
    if (this.slice.add(1, reply.body.bytes.length)) yield this.slice.end()
    const { contentType } = reply.body
    const frames = cutFrames(reply.body, record.facts.startedAt)
    const assembled = yield* assembleReply(record.facts.style ?? "", frames, contentType, this.slice)
    this.#searched += reply.body.bytes.length
    if (assembled === undefined) return frames.some(({ data }) => this.#findsRaw(record, data, words))
    const { calls, reasoning, text } = assembled
    return [text, reasoning, ...calls.map((call) => call.arguments)].some((text) => this.#finds(record, text, words))
  }

  /** Searches JSON as text: a word may stand there escaped. */
  #findsRaw(record: RequestRecord, json: string, words: string): boolean {
    const escaped = JSON.stringify(words).slice(1, -1)
    return this.#finds(record, json, words) || (escaped !== words && this.#finds(record, json, escaped))
  }

  #finds(record: RequestRecord, text: string, words: string): boolean {
    this.#searched += text.length
    if (!text.toLowerCase().includes(words)) return false
    // The view redacts credentials, so a search must not find them.
    return redactText(text, [...record.secrets, ...this.#context.secrets]).toLowerCase().includes(words)
  }
}

/** A page of records. */
interface RecordPage {
  /** Newest first. */
  readonly records: ReadonlyArray<RequestRecord>
  /** Number of the record after which the next page goes on; `undefined` on the last page. */
  readonly next: number | undefined
}

/** The first `limit` of `records` (newest first) that match; fewer if the search of a text ends early. */
export function* pageOf(
  records: Iterable<RequestRecord>,
  limit: number,
  filter: RequestFilter,
  context: SearchContext
): Cooperative<RecordPage> {
  const matcher = new Matcher(filter, context)
  const found: Array<RequestRecord> = []
  let last: number | undefined
  for (const record of records) {
    if (matcher.slice.add(1)) yield matcher.slice.end()
    if (matcher.missed(record) === "all") {
      if (matcher.isSpent) return { records: found, next: last }
      if (yield* matcher.holds(record)) {
        if (found.length === limit) return { records: found, next: last }
        found.push(record)
      }
    }
    last = record.number
  }
  return { records: found, next: undefined }
}

/** A page of a sorted list. */
interface SortedPage {
  readonly records: ReadonlyArray<{ readonly place: SortedPlace; readonly record: RequestRecord }>
  /** The place after which the next page goes on; `undefined` on the last page. */
  readonly next: SortedPlace | undefined
}

/**
 * The first `limit` of the records that match, in an order of values, after a place. One pass that keeps `limit` records. The filter has no
 * `text`, because a search of texts ends early and so knows no first ones.
 */
export function* sortedPageOf(
  records: Iterable<RequestRecord>,
  limit: number,
  filter: RequestFilter,
  { order, sort }: RequestOrder,
  after: SortedPlace | undefined,
  context: SearchContext
): Cooperative<SortedPage> {
  const matcher = new Matcher(filter, context)
  const valueOf = sortValues[sort]
  const best: Array<SortedPage["records"][number]> = []
  let isCut = false
  for (const record of records) {
    if (matcher.slice.add(1)) yield matcher.slice.end()
    const value = valueOf(record)
    const place = [value === undefined ? lastRank : order === "desc" ? value : -value, record.number] as const
    if (after !== undefined && !isBehind(place, after)) continue
    if (matcher.missed(record) !== "all") continue
    const isFull = best.length === limit
    isCut ||= isFull
    if (isFull && isBehind(place, best[limit - 1]!.place)) continue
    let [low, high] = [0, best.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (isBehind(place, best[middle]!.place)) low = middle + 1
      else high = middle
    }
    best.splice(low, 0, { place, record })
    if (isFull) best.pop()
  }
  return { records: best, next: isCut ? best.at(-1)?.place : undefined }
}

/** Counts of the records that match, by facet and value. */
export interface FacetCounts {
  readonly counts: { readonly [Name in FacetName]: ReadonlyArray<readonly [value: string, count: number]> }
  /** Records that match all filters. */
  readonly total: number
  /** False if the search of a text ended early. */
  readonly complete: boolean
}

/** Sorted by count, then by value, at most `most`. */
const mostFrequent = (counts: ReadonlyMap<string, number>, most: number): ReadonlyArray<readonly [string, number]> =>
  [...counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)).slice(0, most)

const byFacet = <A>(make: (name: FacetName) => A): { readonly [Name in FacetName]: A } =>
  Object.fromEntries(facetNames.map((name) => [name, make(name)])) as { readonly [Name in FacetName]: A }

/** Counts the records of each facet's values that match all filters but the facet's own. */
export function* countFacets(
  records: Iterable<RequestRecord>,
  filter: RequestFilter,
  context: SearchContext
): Cooperative<FacetCounts> {
  const matcher = new Matcher(filter, context)
  const counts = byFacet(() => new Map<string, number>())
  const counting = facetNames.map((name) => {
    const rule: FacetRule = facetRules[name]
    const values = counts[name]
    const add = (value: string | undefined) => {
      if (value !== undefined && value !== "") values.set(value, (values.get(value) ?? 0) + 1)
    }
    return { name, count: (record: RequestRecord) => rule.count(record, add) }
  })
  let total = 0
  let complete = true
  for (const record of records) {
    if (matcher.slice.add(1)) yield matcher.slice.end()
    const missed = matcher.missed(record)
    if (missed === undefined) continue
    if (matcher.isSpent) {
      complete = false
      break
    }
    if (!(yield* matcher.holds(record))) continue
    if (missed === "all") total++
    for (const { count, name } of counting) if (missed === "all" || missed === name) count(record)
  }
  return { counts: byFacet((name) => mostFrequent(counts[name], mostCounted)), total, complete }
}

/** Adds up the counts of several nodes, at most 50 values for each facet. */
export const addFacets = (all: ReadonlyArray<FacetCounts>): FacetCounts => ({
  counts: byFacet((name) => {
    const sums = new Map<string, number>()
    for (const { counts } of all) {
      for (const [value, count] of counts[name] ?? []) sums.set(value, (sums.get(value) ?? 0) + count)
    }
    return mostFrequent(sums, mostValues)
  }),
  total: all.reduce((sum, { total }) => sum + total, 0),
  complete: all.every(({ complete }) => complete)
})
