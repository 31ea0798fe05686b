/**
 * The configured upstream: one driver until the configuration's `upstream` group changes.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Deadlines } from "../config/clock/Deadlines.ts"
import { ConfigStore } from "../config/ConfigStore.ts"
import type { UpstreamConfig } from "../config/GatewayConfig.ts"
import { nativeModels } from "../domain/models.ts"
import { makeEmbeddedDriver } from "./embedded/driver.ts"
import { Recordings } from "./embedded/recordings.ts"
import { type ExchangeLimits, Exchanges } from "./Exchange.ts"
import { makeGenerateDriver } from "./generate/driver.ts"
import { makeMessagesDriver } from "./messages/driver.ts"
import { makeOpenAiDriver } from "./openai/driver.ts"
import { makeSessionDriver } from "./session/driver.ts"
import { type Driver, Upstream, type UpstreamModel } from "./Upstream.ts"

const furtherModels = (config: UpstreamConfig): ReadonlyArray<UpstreamModel> =>
  config.models.filter((model) => !nativeModels.some((native) => native.id === model.id))

const limits = ({ timeouts }: UpstreamConfig): ExchangeLimits => ({
  firstByte: timeouts.first_byte * 1000,
  silence: timeouts.silence * 1000
})

/** The driver of a configuration. */
const makeDriver = (
  exchanges: Exchanges["Service"],
  config: UpstreamConfig
): Effect.Effect<Driver, never, Deadlines> => {
  switch (config.driver) {
    case "embedded":
      return makeEmbeddedDriver({ furtherModels: furtherModels(config), limits: limits(config) })
    case "session":
      return Effect.succeed(makeSessionDriver(exchanges, {
        baseUrl: config.base_url,
        furtherModels: furtherModels(config),
        limits: limits(config)
      }))
    case "openai":
      return Effect.succeed(makeOpenAiDriver(exchanges, {
        baseUrl: config.base_url,
        models: config.models,
        furtherModels: furtherModels(config),
        tools: config.tools,
        historyReasoning: config.history_reasoning,
        fields: config.fields,
        limits: limits(config)
      }))
    case "generate":
      return Effect.succeed(makeGenerateDriver(exchanges, {
        baseUrl: config.base_url,
        models: config.models,
        furtherModels: furtherModels(config),
        historyReasoning: config.history_reasoning,
        fields: config.fields,
        limits: limits(config)
      }))
    case "messages":
      return Effect.succeed(makeMessagesDriver(exchanges, {
        baseUrl: config.base_url,
        models: config.models,
        furtherModels: furtherModels(config),
        fields: config.fields,
        limits: limits(config)
      }))
  }
}

/** Follows the configuration. */
export const layer: Layer.Layer<Upstream, never, ConfigStore | Deadlines | Exchanges> = Layer.effect(
  Upstream,
  Effect.gen(function*() {
    const store = yield* ConfigStore
    const exchanges = yield* Exchanges
    const deadlines = yield* Deadlines
    const recordings = yield* Recordings
    let made: { readonly config: UpstreamConfig; readonly driver: Driver } | undefined
    const driver = Effect.suspend(() => {
      const config = store.now().upstream
      if (made?.config === config) return Effect.succeed(made.driver)
      return makeDriver(exchanges, config).pipe(
        Effect.provideService(Recordings, recordings),
        Effect.provideService(Deadlines, deadlines),
        Effect.map((driver) => {
          made = { config, driver }
          return driver
        })
      )
    })
    return Upstream.of({ driver })
  })
)
