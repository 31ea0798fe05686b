/**
 * The embedded upstream with scripts and faults: a driver in place of the built-in one, over a provider of its own.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import { randomUUID } from "node:crypto"
import { Deadlines } from "../config/clock/Deadlines.ts"
import { type EmbeddedOptions, embeddedOver } from "../upstream/embedded/driver.ts"
import type { SessionDriver } from "../upstream/session/driver.ts"
import { exchangesOf } from "../upstream/transports/httpClient.ts"
import { Provider } from "./Provider.ts"
import { makeClient } from "./provider/client.ts"

/** Events in one chunk, as several share one on a network. */
const burst = 8

/** The provider requires a token. */
const withToken = (request: HttpClientRequest.HttpClientRequest): HttpClientRequest.HttpClientRequest =>
  request.headers["authorization"] === undefined ? HttpClientRequest.bearerToken(request, "anonymous") : request

/** Makes a driver of the name `embedded` that does what the scripts in prompts say. */
export const makeScriptedDriver = (options: EmbeddedOptions): Effect.Effect<SessionDriver, never, Deadlines> =>
  Effect.gen(function*() {
    const clock = yield* Clock.Clock
    const provider = new Provider({ newSessionId: randomUUID, burst }, () => clock.currentTimeMillisUnsafe())
    const client = HttpClient.mapRequest(makeClient(provider), withToken)
    const exchanges = yield* exchangesOf(client, yield* Deadlines, () => false)
    return embeddedOver(exchanges, options)
  })
