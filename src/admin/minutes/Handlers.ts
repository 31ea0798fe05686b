/**
 * Serves the requests of the last hour.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { UsageRecorder } from "../../completion/UsageRecorder.ts"
import { WrittenMinutes } from "../../usage/RequestMinutes.ts"
import { adminHandlers } from "../handlers.ts"
import { makeNodeItems } from "../nodeItems.ts"
import { answerQuery, askAll, noQuestion } from "../nodes/Query.ts"
import { AdminMinutesGroup } from "./Api.ts"

/** The question to each node for its counts. */
const query = { name: "request-minutes", question: noQuestion, answer: Schema.fromJsonString(WrittenMinutes) }

export const AdminMinutesHandlers = adminHandlers(AdminMinutesGroup, function*() {
  const { minutes } = yield* UsageRecorder
  const { missingNodes, peers } = yield* makeNodeItems

  answerQuery(peers, query, () => Effect.map(Clock.currentTimeMillis, (now) => minutes.written(now)))
  const ask = askAll(peers, query)

  return {
    list: Effect.fnUntraced(function*() {
      const { answers, missing } = yield* ask("")
      return { ...minutes.view(yield* Clock.currentTimeMillis, answers.values()), ...missingNodes(missing) }
    })
  }
})
