/**
 * Serves the requests of the last hour.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { UsageRecorder } from "../../completion/UsageRecorder.ts"
import type { WrittenMinutes } from "../../usage/RequestMinutes.ts"
import { adminHandlers } from "../handlers.ts"
import { makeNodeItems } from "../nodeItems.ts"
import { AdminMinutesGroup } from "./Api.ts"

/** The kind of the query that other nodes answer with their counts. */
const kind = "request-minutes"

export const AdminMinutesHandlers = adminHandlers(AdminMinutesGroup, function*() {
  const { minutes } = yield* UsageRecorder
  const { missingNodes, peers } = yield* makeNodeItems

  peers.answers(kind, () => Effect.map(Clock.currentTimeMillis, (now) => JSON.stringify(minutes.written(now))))

  return {
    list: Effect.fnUntraced(function*() {
      const { answers, missing } = yield* peers.queryAll(kind, "")
      const others = Array.from(answers.values(), (text) => JSON.parse(text) as WrittenMinutes)
      return { ...minutes.view(yield* Clock.currentTimeMillis, others), ...missingNodes(missing) }
    })
  }
})
