/**
 * The records of all nodes by the time at which they began.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { runCooperatively } from "../../config/clock/cooperative.ts"
import { countHistogram, joinHistograms, partWidth } from "../../recordings/histogram.ts"
import { Requests } from "../../recordings/Requests.ts"
import type { RequestFilter } from "../../recordings/search.ts"
import { Nodes } from "../nodes/Nodes.ts"
import { answerQuery, askAll } from "../nodes/Query.ts"
import { searchContext } from "./facets.ts"

/** The counts of one node. Times are Unix milliseconds. */
const NodeHistogram = Schema.Struct({
  parts: Schema.Array(Schema.Struct({
    at: Schema.Finite,
    ok: Schema.Int,
    failed: Schema.Int,
    cancelled: Schema.Int,
    open: Schema.Int,
    durations: Schema.Array(Schema.Int)
  })),
  complete: Schema.Boolean,
  /** When its oldest record began. */
  keptFrom: Schema.optionalKey(Schema.Finite),
  width: Schema.Finite
})

/** The question to each node for the records of a filter. */
const query = {
  name: "request histogram",
  question: Schema.fromJsonString(Schema.Record(Schema.String, Schema.String)),
  answer: Schema.fromJsonString(NodeHistogram)
}

/** The times that a filter asks for. Without `to` they end with the running millisecond. */
const rangeOf = (filter: RequestFilter, keptFrom: number | undefined, now: number) => {
  const to = Number(filter["to"] ?? now + 1)
  return { from: Math.min(to - 1, Number(filter["from"] ?? keptFrom ?? now)), to }
}

/** Makes the histogram of all nodes, and answers the questions of the others. */
export const makeHistogram = Effect.gen(function*() {
  const requests = yield* Requests
  const context = yield* searchContext
  const { peers } = yield* Nodes

  const own = Effect.fnUntraced(function*(filter: RequestFilter) {
    const records = requests.older(undefined)
    const keptFrom = records.at(-1)?.startedAt
    const { from, to } = rangeOf(filter, keptFrom, yield* Clock.currentTimeMillis)
    const width = partWidth(from, to)
    const counted = yield* runCooperatively(countHistogram(records, filter, width, context()))
    return { ...counted, width, ...(keptFrom === undefined ? {} : { keptFrom }) }
  })
  answerQuery(peers, query, own)
  const ask = askAll(peers, query)

  return Effect.fnUntraced(function*(filter: { readonly [name: string]: string }) {
    const [counted, { answers, missing }] = yield* Effect.all([own(filter), ask(filter)], { concurrency: 2 })
    const all = [counted, ...answers.values()]
    const oldest = all.reduce((oldest, { keptFrom = Infinity }) => Math.min(oldest, keptFrom), Infinity)
    const keptFrom = Number.isFinite(oldest) ? oldest : undefined
    const { from, to } = rangeOf(filter, keptFrom, yield* Clock.currentTimeMillis)
    // The parts of a node may be wider than the clock of this one asks for.
    const width = all.reduce((widest, { width }) => Math.max(widest, width), partWidth(from, to))
    return {
      kept_from: keptFrom ?? null,
      bucket_ms: width,
      buckets: joinHistograms(all.flatMap(({ parts }) => parts), from, to, width),
      complete: all.every(({ complete }) => complete),
      missing
    }
  })
})
