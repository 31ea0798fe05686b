/**
 * The `embedded` driver: the session driver over a provider in the same process, without a network.
 *
 * The gateway uses it until an upstream is configured. It accepts every login and every token, and requires neither.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { randomUUID } from "node:crypto"
import { Deadlines } from "../../config/clock/Deadlines.ts"
import type { UpstreamModel } from "../../domain/UpstreamModel.ts"
import type { ExchangeLimits, Exchanges } from "../Exchange.ts"
import { makeSessionDriver, type SessionDriver } from "../session/driver.ts"
import { answeredExchanges } from "../transports/answered.ts"
import { makeAnswerer } from "./answerer.ts"

/** Settings of the driver. */
export interface EmbeddedOptions {
  /** Model ids beyond the native ones. */
  readonly furtherModels: ReadonlyArray<UpstreamModel>
  readonly limits: ExchangeLimits
}

/** Makes a driver of the built-in upstream over exchanges with a provider of the session protocol. */
export const embeddedOver = (exchanges: Exchanges["Service"], options: EmbeddedOptions): SessionDriver => ({
  ...makeSessionDriver(exchanges, { baseUrl: "http://embedded", ...options }),
  name: "embedded",
  isAnonymous: true
})

/** Makes the built-in driver, which answers without a network. */
export const makeEmbeddedDriver = (options: EmbeddedOptions): Effect.Effect<SessionDriver, never, Deadlines> =>
  Effect.map(Effect.all([Clock.Clock, Deadlines]), ([clock, deadlines]) => {
    const answer = makeAnswerer(randomUUID, () => clock.currentTimeMillisUnsafe())
    return embeddedOver(answeredExchanges(deadlines, answer), options)
  })
