/**
 * The `embedded` driver: the session driver over an answerer in the same process, without a network.
 *
 * The gateway uses it until an upstream is configured. It accepts every login and every token, and requires neither.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import { randomUUID } from "node:crypto"
import { Deadlines } from "../../config/clock/Deadlines.ts"
import type { UpstreamModel } from "../../domain/UpstreamModel.ts"
import type { ExchangeLimits } from "../Exchange.ts"
import { makeSessionDriver, type SessionDriver } from "../session/driver.ts"
import { exchangesOf } from "../transports/httpClient.ts"
import { Answerer } from "./Answerer.ts"
import { makeClient } from "./client.ts"
import { withRecordings } from "./recordings.ts"

/** Settings of the driver. */
export interface EmbeddedOptions {
  /** Model ids beyond the native ones. */
  readonly furtherModels: ReadonlyArray<UpstreamModel>
  readonly limits: ExchangeLimits
}

/** Placeholder token; the protocol requires one. */
const anonymousToken = "anonymous"

const withToken = (request: HttpClientRequest.HttpClientRequest): HttpClientRequest.HttpClientRequest =>
  request.headers["authorization"] === undefined ? HttpClientRequest.bearerToken(request, anonymousToken) : request

/** Makes the built-in driver, which answers without a network. */
export const makeEmbeddedDriver = (options: EmbeddedOptions): Effect.Effect<SessionDriver, never, Deadlines> =>
  Effect.gen(function*() {
    const clock = yield* Clock.Clock
    const deadlines = yield* Deadlines
    // Bounds for the gateway's own memory; several events share a chunk, as they do on a network.
    const answerer = new Answerer(
      { newSessionId: randomUUID, maxSessions: 2000, maxCharacters: 8 * 1024 * 1024, burst: 8 },
      () => clock.currentTimeMillisUnsafe()
    )
    const client = HttpClient.mapRequest(makeClient(answerer), withToken)
    const exchanges = yield* exchangesOf(client, deadlines, () => false)
    const driver = makeSessionDriver(exchanges, { baseUrl: "http://embedded", ...options })
    return yield* withRecordings(
      { ...driver, name: "embedded", isAnonymous: true },
      options.limits,
      deadlines
    )
  })
