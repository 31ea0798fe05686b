/**
 * Serves the requests of the last hour.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { UsageRecorder } from "../../completion/UsageRecorder.ts"
import { ConfigStore } from "../../config/ConfigStore.ts"
import type { MostlyFor } from "../../usage/ErrorCounts.ts"
import { WrittenMinutes } from "../../usage/RequestMinutes.ts"
import { adminHandlers } from "../handlers.ts"
import { makeNodeItems } from "../nodeItems.ts"
import { answerQuery, askAll, noQuestion } from "../nodes/Query.ts"
import { keyNameIn } from "../requests/view.ts"
import { AdminMinutesGroup } from "./Api.ts"

/** The question to each node for its counts. */
const query = { name: "request-minutes", question: noQuestion, answer: Schema.fromJsonString(WrittenMinutes) }

export const AdminMinutesHandlers = adminHandlers(AdminMinutesGroup, function*() {
  const config = yield* ConfigStore
  const { minutes } = yield* UsageRecorder
  const { missingNodes, peers } = yield* makeNodeItems

  answerQuery(peers, query, () => Effect.map(Clock.currentTimeMillis, (now) => minutes.written(now)))
  const ask = askAll(peers, query)

  return {
    list: Effect.fnUntraced(function*() {
      const { answers, missing } = yield* ask("")
      const hour = minutes.view(yield* Clock.currentTimeMillis, answers.values())
      const keyName = keyNameIn(config.now())
      const named = (most: MostlyFor | null, name: string | null = null) => most && { ...most, name }
      const errors = hour.errors.map((each) => ({
        ...each,
        key: named(each.key, keyName(each.key?.value ?? "") ?? null),
        model: named(each.model),
        upstream: named(each.upstream)
      }))
      return { ...hour, errors, ...missingNodes(missing) }
    })
  }
})
