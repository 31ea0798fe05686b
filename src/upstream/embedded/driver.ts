/**
 * The `embedded` driver: the session driver over a reference upstream in this very process, without a network.
 *
 * It is what the gateway answers with before it is configured. Any login and any token is accepted, and none is needed.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import { randomUUID } from "node:crypto"
import { Deadlines } from "../../config/clock/Deadlines.ts"
import { makeClient } from "../../testing/inProcess.ts"
import { Provider } from "../../testing/Provider.ts"
import type { ExchangeLimits } from "../Exchange.ts"
import { exchangesOf } from "../exchanges/httpClient.ts"
import { makeSessionDriver } from "../session/driver.ts"
import type { Driver, UpstreamModel } from "../Upstream.ts"
import { withRecordings } from "./recordings.ts"

/** What the driver needs to know of its configuration. */
export interface EmbeddedOptions {
  /** Ids that are listed and served beyond the natives. */
  readonly furtherModels: ReadonlyArray<UpstreamModel>
  readonly limits: ExchangeLimits
}

/** The token of those who bring none: the protocol knows no call without one. */
const anonymousToken = "anonymous"

const withToken = (request: HttpClientRequest.HttpClientRequest): HttpClientRequest.HttpClientRequest =>
  request.headers["authorization"] === undefined ? HttpClientRequest.bearerToken(request, anonymousToken) : request

/** Makes the driver, with an upstream of its own behind it. */
export const makeEmbeddedDriver = (options: EmbeddedOptions): Effect.Effect<Driver, never, Deadlines> =>
  Effect.gen(function*() {
    const clock = yield* Clock.Clock
    const deadlines = yield* Deadlines
    // Nobody reads its report, and it shares the gateway's memory; several events share a chunk, as they do on a network.
    const provider = new Provider(
      { newSessionId: randomUUID, remember: 0, maxSessions: 2000, maxCharacters: 8 * 1024 * 1024, burst: 8 },
      () => clock.currentTimeMillisUnsafe()
    )
    const client = HttpClient.mapRequest(makeClient(provider), withToken)
    const exchanges = yield* exchangesOf(client, deadlines, () => false)
    const driver = makeSessionDriver(exchanges, { baseUrl: "http://embedded", ...options })
    return yield* withRecordings(
      { ...driver, name: "embedded", capabilities: { ...driver.capabilities, anonymous: true } },
      options.limits,
      deadlines
    )
  })
