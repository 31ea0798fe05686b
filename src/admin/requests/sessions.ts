/**
 * The sessions of the records of all nodes.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { runCooperatively } from "../../config/clock/cooperative.ts"
import { Requests } from "../../recordings/Requests.ts"
import type { RequestFilter } from "../../recordings/search.ts"
import { countSessions, joinSessions } from "../../recordings/sessions.ts"
import { Nodes } from "../nodes/Nodes.ts"
import { answerQuery, askAll } from "../nodes/Query.ts"
import { RecordedSession } from "./Api.ts"
import { searchContext } from "./facets.ts"

/** The question to each node for the sessions of a filter. */
const query = {
  name: "request sessions",
  question: Schema.fromJsonString(Schema.Record(Schema.String, Schema.String)),
  answer: Schema.fromJsonString(Schema.Struct({ sessions: Schema.Array(RecordedSession), complete: Schema.Boolean }))
}

/** Makes the sessions of all nodes, and answers the questions of the others. */
export const makeSessions = Effect.gen(function*() {
  const requests = yield* Requests
  const context = yield* searchContext
  const { peers } = yield* Nodes

  const own = (filter: RequestFilter) => runCooperatively(countSessions(requests.older(undefined), filter, context()))
  answerQuery(peers, query, own)
  const ask = askAll(peers, query)

  return Effect.fnUntraced(function*(filter: { readonly [name: string]: string }) {
    const [counted, { answers, missing }] = yield* Effect.all([own(filter), ask(filter)], { concurrency: 2 })
    return { ...joinSessions([counted, ...answers.values()]), missing }
  })
})
