/**
 * Facets of the records of all nodes.
 */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { AdminCredentials } from "../../config/AdminCredentials.ts"
import { runCooperatively } from "../../config/clock/cooperative.ts"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { Requests } from "../../recordings/Requests.ts"
import { addFacets, countFacets, type FacetName, type RequestFilter } from "../../recordings/search.ts"
import { Nodes } from "../nodes/Nodes.ts"
import { answerQuery, askAll } from "../nodes/Query.ts"
import type { RequestFacets } from "./Api.ts"
import { keyNameIn } from "./view.ts"

const Counts = Schema.Array(Schema.Tuple([Schema.String, Schema.Int]))

/** The counts of one node. */
const NodeFacets = Schema.Struct({
  counts: Schema.Struct({
    key: Counts,
    model: Counts,
    style: Counts,
    app: Counts,
    session: Counts,
    upstream: Counts,
    account: Counts,
    outcome: Counts,
    code: Counts,
    prompt_cache: Counts,
    slow: Counts
  }),
  total: Schema.Int,
  complete: Schema.Boolean,
  kept: Schema.Int
})

/** The question to each node for the counts of a filter. */
const query = {
  name: "request facets",
  question: Schema.fromJsonString(Schema.Record(Schema.String, Schema.String)),
  answer: Schema.fromJsonString(NodeFacets)
}

/** What searches and views know beside the records, by the configuration in effect. */
export const searchContext = Effect.map(Effect.all([ConfigStore, AdminCredentials]), ([store, { adminKey }]) => {
  const secrets = [Redacted.value(adminKey)]
  return () => ({ keyName: keyNameIn(store.now()), secrets })
})

/** Makes the counts of all nodes, and answers the questions of the others. */
export const makeFacets = Effect.gen(function*() {
  const requests = yield* Requests
  const context = yield* searchContext
  const { peers } = yield* Nodes

  const own = (filter: RequestFilter): Effect.Effect<typeof NodeFacets.Type> =>
    Effect.map(
      runCooperatively(countFacets(requests.older(undefined), filter, context())),
      (counted) => ({ ...counted, kept: requests.status().kept })
    )
  answerQuery(peers, query, own)
  const ask = askAll(peers, query)

  return Effect.fnUntraced(function*(filter: { readonly [name: string]: string }) {
    const [counted, { answers, missing }] = yield* Effect.all(
      [own(filter), ask(filter)],
      { concurrency: 2 }
    )
    const all = [counted, ...answers.values()]
    const { complete, counts, total } = addFacets(all)
    const { keyName } = context()
    const view = (name: FacetName) =>
      counts[name].map(([value, count]) => ({ value, name: name === "key" ? keyName(value) ?? null : null, count }))
    const facets: typeof RequestFacets.fields.facets.Type = {
      key: view("key"),
      model: view("model"),
      style: view("style"),
      app: view("app"),
      session: view("session"),
      upstream: view("upstream"),
      account: view("account"),
      outcome: view("outcome"),
      code: view("code"),
      prompt_cache: view("prompt_cache"),
      slow: view("slow")
    }
    return { facets, total, kept: all.reduce((sum, { kept }) => sum + kept, 0), complete, missing }
  })
})
