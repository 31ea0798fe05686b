/**
 * Serves live changes.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Stream from "effect/Stream"
import { randomBytes } from "node:crypto"
import { Accounts } from "../../accounts/Accounts.ts"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { gatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import { Requests } from "../../recordings/Requests.ts"
import { adminHandlers } from "../handlers.ts"
import { CurrentOperator } from "../middleware.ts"
import { nodeName } from "../nodeItems.ts"
import { AdminEventsGroup } from "./Api.ts"
import { Draining, eventFeed, type FeedSource, type Topic, topics } from "./EventFeed.ts"

/** Bounds the open streams. */
const mostStreams = 32

const tooMany = gatewayError("rate_limit_exceeded", `More than ${mostStreams} streams of events are read at once`, {
  retryAfter: 10
})

const isTopic = (name: string): name is Topic => topics.some((topic) => topic === name)

const topicsIn = (text: string | undefined) => {
  const names = (text ?? "").split(",").map((name) => name.trim()).filter((name) => name !== "")
  const unknown = names.find((name) => !isTopic(name))
  return unknown !== undefined
    ? Effect.fail(invalidRequest(`topics: must be of ${topics.join(", ")}`, "topics"))
    : Effect.succeed(new Set(names.length === 0 ? topics : names.filter(isTopic)))
}

export const AdminEventsHandlers = adminHandlers(AdminEventsGroup, function*() {
  const accounts = yield* Accounts
  const config = yield* ConfigStore
  const requests = yield* Requests
  const draining = yield* Draining
  const source: FeedSource = {
    boot: randomBytes(6).toString("hex"),
    startedAt: yield* Clock.currentTimeMillis,
    node: yield* nodeName
  }
  let open = 0

  return {
    stream: Effect.fnUntraced(function*({ headers, query }) {
      const wanted = yield* topicsIn(query.topics)
      if (open >= mostStreams) return yield* tooMany
      yield* Effect.acquireRelease(Effect.sync(() => open++), () => Effect.sync(() => open--))
      const feed = yield* eventFeed(source, {
        topics: wanted,
        lastEventId: headers["last-event-id"],
        operator: yield* CurrentOperator
      }).pipe(
        Effect.provideService(Accounts, accounts),
        Effect.provideService(ConfigStore, config),
        Effect.provideService(Requests, requests),
        Effect.provideService(Draining, draining)
      )
      return HttpServerResponse.stream(Stream.encodeText(feed), {
        contentType: "text/event-stream",
        headers: { "x-accel-buffering": "no" }
      })
    })
  }
})
