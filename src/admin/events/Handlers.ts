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
import { ConfigTransfer } from "../../config/ConfigTransfer.ts"
import { type GatewayError, gatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import { Draining } from "../../http/Draining.ts"
import { Requests } from "../../recordings/Requests.ts"
import { adminHandlers } from "../handlers.ts"
import { CurrentOperator, type Operator } from "../middleware.ts"
import { nodeName } from "../nodeItems.ts"
import { AdminEventsGroup } from "./Api.ts"
import { eventFeed, type FeedSource, type Topic, topics } from "./EventFeed.ts"

/** Bounds the open streams: all, those of roles below admin together, and those of one named credential with its sessions. */
const mostStreams = 32
const mostOfOthers = 24
const mostOfCredential = 8

const tooMany = (most: number, whose = "") =>
  gatewayError("rate_limit_exceeded", `More than ${most} streams of events${whose} are open`, {
    retryAfter: 10
  })

/** The open streams, counted by their readers. */
class OpenStreams {
  #all = 0
  #ofOthers = 0
  readonly #ofCredentials = new Map<string, number>()

  /** The error of one more stream of an operator; `undefined` if there is room for it. */
  refusal({ role, who: { name } }: Operator): GatewayError | undefined {
    if (this.#all >= mostStreams) return tooMany(mostStreams)
    if (name !== null && this.#of(name) >= mostOfCredential) return tooMany(mostOfCredential, " of one credential")
    return role !== "admin" && this.#ofOthers >= mostOfOthers
      ? tooMany(mostOfOthers, " of operators and viewers")
      : undefined
  }

  /** Counts a stream that opens (1) or closes (-1). */
  count({ role, who: { name } }: Operator, by: 1 | -1): void {
    this.#all += by
    if (role !== "admin") this.#ofOthers += by
    if (name === null) return
    const left = this.#of(name) + by
    if (left === 0) this.#ofCredentials.delete(name)
    else this.#ofCredentials.set(name, left)
  }

  #of(name: string): number {
    return this.#ofCredentials.get(name) ?? 0
  }
}

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
  const transfer = yield* ConfigTransfer
  const requests = yield* Requests
  const draining = yield* Draining
  const source: FeedSource = {
    boot: randomBytes(6).toString("hex"),
    startedAt: yield* Clock.currentTimeMillis,
    node: yield* nodeName
  }
  const open = new OpenStreams()

  return {
    stream: Effect.fnUntraced(function*({ headers, query }) {
      const wanted = yield* topicsIn(query.topics)
      const operator = yield* CurrentOperator
      const refused = open.refusal(operator)
      if (refused !== undefined) return yield* refused
      yield* Effect.acquireRelease(
        Effect.sync(() => open.count(operator, 1)),
        () => Effect.sync(() => open.count(operator, -1))
      )
      const feed = yield* eventFeed(source, {
        topics: wanted,
        lastEventId: headers["last-event-id"],
        operator
      }).pipe(
        Effect.provideService(Accounts, accounts),
        Effect.provideService(ConfigStore, config),
        Effect.provideService(ConfigTransfer, transfer),
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
