/**
 * The errors of the last hour by code and fault, and the keys, models and upstreams that most of them are for.
 *
 * Bounded by `mostErrors` pairs of code and fault and the rest as one, times 60 minutes, times `mostValues` values of each noun.
 */
import * as Schema from "effect/Schema"
import { type Fault, faultNames } from "../domain/fault.ts"
import { none } from "../domain/usageNames.ts"
import { MinuteRing } from "./MinuteRing.ts"
import { addCounts, countAmong, largestOf } from "./mostCounted.ts"

/** Pairs of code and fault that are counted apart. */
const mostErrors = 20
/** Stands for all other codes. */
const otherCodes = "other"
/** The values of a noun that a minute of a code counts, and that a node sends: a share is never too large, and too small by less than two ninths. */
const mostValues = 8

/** What an error may be for. */
const nounNames = ["key", "model", "upstream"] as const
type NounName = (typeof nounNames)[number]

type Nouns = { readonly [Name in NounName]: Map<string, number> }

const byNoun = <A>(of: (name: NounName) => A) =>
  Object.fromEntries(nounNames.map((name) => [name, of(name)] as const)) as { readonly [Name in NounName]: A }

const noCounts = (): Nouns => byNoun(() => new Map())

/** A request that ended with an error. A noun that it does not have is `none`. */
export interface EndedWithError extends Readonly<Record<NounName, string>> {
  readonly code: string
  readonly fault: Fault | undefined
  readonly id: string
}

const Counted = Schema.Array(Schema.Tuple([Schema.String, Schema.Finite]))

/** The errors of a code and a fault within the hour, as nodes send them. */
export const CodeErrors = Schema.Struct({
  code: Schema.String,
  count: Schema.Int,
  /** Unix milliseconds of the last one. */
  last_at: Schema.Finite,
  last_request_id: Schema.String,
  /** `null` for the rest. */
  fault: Schema.NullOr(Schema.Literals(faultNames)),
  /** The counts of the most frequent values. */
  nouns: Schema.Struct({ key: Counted, model: Counted, upstream: Counted })
})
export type CodeErrors = typeof CodeErrors.Type

/** The value that most errors of a code are for, and how many at least. */
export interface MostlyFor {
  readonly value: string
  readonly count: number
}

/** The errors of a code and a fault within the hour. */
export interface CodeErrorsView extends Readonly<Record<NounName, MostlyFor | null>> {
  readonly code: string
  readonly fault: Fault | null
  readonly count: number
  readonly last_at: number
  readonly last_request_id: string
}

/** Sums of errors. */
interface Row {
  readonly code: string
  readonly fault: Fault | null
  count: number
  lastAt: number
  lastId: string
  readonly nouns: Nouns
}

const emptyRow = (code: string, fault: Fault | null): Row => ({
  code,
  fault,
  count: 0,
  lastAt: 0,
  lastId: "",
  nouns: noCounts()
})

const addRow = (into: Row, from: Row): void => {
  into.count += from.count
  if (from.lastAt >= into.lastAt) {
    into.lastAt = from.lastAt
    into.lastId = from.lastId
  }
  for (const name of nounNames) addCounts(into.nouns[name], from.nouns[name])
}

const rowOf = ({ code, count, fault, last_at, last_request_id, nouns }: CodeErrors): Row => ({
  code,
  fault,
  count,
  lastAt: last_at,
  lastId: last_request_id,
  nouns: byNoun((name) => new Map(nouns[name]))
})

const idOf = ({ code, fault }: Pick<Row, "code" | "fault">): string => `${code} ${fault}`

const moreFrequent = (a: Row, b: Row): number => b.count - a.count || (idOf(a) < idOf(b) ? -1 : 1)

/** Adds errors up by code and fault: at most `mostErrors` pairs, the most frequent first, and the rest as one. */
const sumRows = (rows: Iterable<Row>): ReadonlyArray<Row> => {
  const sums = new Map<string, Row>()
  const rest = emptyRow(otherCodes, null)
  for (const row of rows) {
    const id = idOf(row)
    if (!sums.has(id)) sums.set(id, row.code === otherCodes ? rest : emptyRow(row.code, row.fault))
    addRow(sums.get(id)!, row)
  }
  const sorted = [...sums.values()].filter((row) => row !== rest).sort(moreFrequent)
  for (const row of sorted.slice(mostErrors)) addRow(rest, row)
  return [...sorted.slice(0, mostErrors), ...(rest.count === 0 ? [] : [rest])]
}

/** What a minute has of a code and a fault. */
interface MinuteErrors {
  count: number
  readonly nouns: Nouns
}

interface Known {
  readonly code: string
  readonly fault: Fault | null
  readonly minutes: MinuteRing<MinuteErrors>
  lastAt: number
  lastId: string
}

/** Counts the errors of one node. */
export class ErrorCounts {
  readonly #known = new Map<string, Known>()

  /** Counts an error of the minute `newest` at `now`, in Unix milliseconds. */
  add(error: EndedWithError, newest: number, now: number): void {
    const known = this.#knownFor(error.code, error.fault ?? null, newest)
    const minute = known.minutes.at(newest)
    minute.count++
    known.lastAt = now
    known.lastId = error.id
    for (const name of nounNames) if (error[name] !== none) countAmong(minute.nouns[name], error[name], mostValues)
  }

  /** The errors of the hour that ends with the minute `newest`, as other nodes receive them. */
  written(newest: number): ReadonlyArray<CodeErrors> {
    return sumRows(this.#rows(newest)).map(({ code, count, fault, lastAt, lastId, nouns }) => ({
      code,
      count,
      last_at: lastAt,
      last_request_id: lastId,
      fault,
      nouns: byNoun((name) => largestOf(nouns[name], mostValues))
    }))
  }

  /** The errors of the hour that ends with the minute `newest`, and those that other nodes have sent. */
  view(newest: number, others: Iterable<CodeErrors>): ReadonlyArray<CodeErrorsView> {
    const rows = [...this.#rows(newest), ...Array.from(others, rowOf)]
    return sumRows(rows).map(({ code, count, fault, lastAt, lastId, nouns }) => ({
      code,
      fault,
      count,
      last_at: lastAt,
      last_request_id: lastId,
      ...byNoun((name) => {
        const [most] = largestOf(nouns[name], 1)
        return most === undefined ? null : { value: most[0], count: most[1] }
      })
    }))
  }

  #rows(newest: number): ReadonlyArray<Row> {
    return Array.from(this.#known.values(), ({ code, fault, lastAt, lastId, minutes }) => {
      const row = { ...emptyRow(code, fault), lastAt, lastId }
      for (const [, { count, nouns }] of minutes.within(newest)) {
        row.count += count
        for (const name of nounNames) addCounts(row.nouns[name], nouns[name])
      }
      return row
    }).filter(({ count }) => count > 0)
  }

  /** The count of a code and a fault: its own, or that of the rest while `mostErrors` others have errors within the hour. */
  #knownFor(code: string, fault: Fault | null, newest: number): Known {
    const id = idOf({ code, fault })
    const known = this.#known.get(id)
    if (known !== undefined) return known
    if (code !== otherCodes && this.#known.size >= mostErrors) {
      for (const [each, { minutes }] of this.#known) if (minutes.within(newest).next().done) this.#known.delete(each)
      const rest = this.#known.has(idOf({ code: otherCodes, fault: null })) ? 1 : 0
      if (this.#known.size - rest >= mostErrors) return this.#knownFor(otherCodes, null, newest)
    }
    const made: Known = {
      code,
      fault,
      minutes: new MinuteRing(() => ({ count: 0, nouns: noCounts() })),
      lastAt: 0,
      lastId: ""
    }
    this.#known.set(id, made)
    return made
  }
}
