/**
 * The configured upstreams: each has one driver until its part of the configuration changes.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Deadlines } from "../config/clock/Deadlines.ts"
import { ConfigStore } from "../config/ConfigStore.ts"
import type { NamedUpstream, UpstreamConfig } from "../config/GatewayConfig.ts"
import { nativeModels } from "../domain/models.ts"
import { defaultUpstream } from "../domain/routes.ts"
import { makeEmbeddedDriver } from "./embedded/driver.ts"
import { Recordings } from "./embedded/recordings.ts"
import { type ExchangeLimits, Exchanges } from "./Exchange.ts"
import { makeGenerateDriver } from "./generate/driver.ts"
import { makeMessagesDriver } from "./messages/driver.ts"
import { makeOpenAiDriver } from "./openai/driver.ts"
import { makeSessionDriver } from "./session/driver.ts"
import { type Driver, Upstream, type UpstreamModel } from "./Upstream.ts"
import { type Drivers, Upstreams } from "./Upstreams.ts"

/** What drivers are made from, of the group `upstream` or a named upstream. */
type DriverConfig = Omit<UpstreamConfig, "timeouts"> & Pick<NamedUpstream, "timeouts">

const furtherModels = (config: DriverConfig): ReadonlyArray<UpstreamModel> =>
  config.models.filter((model) => !nativeModels.some((native) => native.id === model.id))

const limits = ({ timeouts }: DriverConfig): ExchangeLimits => ({
  firstByte: timeouts.first_byte * 1000,
  silence: timeouts.silence * 1000
})

/** The driver of an upstream that is reached by a network. */
const makeServerDriver = (
  exchanges: Exchanges["Service"],
  config: DriverConfig & { readonly driver: Exclude<UpstreamConfig["driver"], "embedded"> }
): Driver => {
  switch (config.driver) {
    case "session":
      return makeSessionDriver(exchanges, {
        baseUrl: config.base_url,
        furtherModels: furtherModels(config),
        limits: limits(config)
      })
    case "openai":
      return makeOpenAiDriver(exchanges, {
        baseUrl: config.base_url,
        models: config.models,
        furtherModels: furtherModels(config),
        tools: config.tools,
        historyReasoning: config.history_reasoning,
        fields: config.fields,
        limits: limits(config)
      })
    case "generate":
      return makeGenerateDriver(exchanges, {
        baseUrl: config.base_url,
        models: config.models,
        furtherModels: furtherModels(config),
        historyReasoning: config.history_reasoning,
        fields: config.fields,
        limits: limits(config)
      })
    case "messages":
      return makeMessagesDriver(exchanges, {
        baseUrl: config.base_url,
        models: config.models,
        furtherModels: furtherModels(config),
        fields: config.fields,
        limits: limits(config)
      })
  }
}

/** The driver of the group `upstream`. */
const makeDriver = (
  exchanges: Exchanges["Service"],
  config: UpstreamConfig
): Effect.Effect<Driver, never, Deadlines> => {
  const { driver } = config
  return driver === "embedded"
    ? makeEmbeddedDriver({ furtherModels: furtherModels(config), limits: limits(config) })
    : Effect.succeed(makeServerDriver(exchanges, { ...config, driver }))
}

/** The upstreams that the configuration names. An embedder with an `Upstream` of its own adds them by this layer. */
export const namedUpstreams: Layer.Layer<never, never, ConfigStore | Exchanges> = Layer.effect(
  Upstreams,
  Effect.gen(function*() {
    const store = yield* ConfigStore
    const exchanges = yield* Exchanges
    const make = (upstream: NamedUpstream): Driver => {
      const { driver } = upstream
      // The decoder of the configuration allows the embedded driver for `default` alone.
      return makeServerDriver(exchanges, { ...upstream, driver: driver === "embedded" ? "session" : driver })
    }
    let configured: ReadonlyArray<NamedUpstream> | undefined
    let drivers: Drivers = new Map()
    let made = new Map<NamedUpstream, Driver>()
    const now = () => {
      const { upstreams } = store.now()
      if (upstreams === configured) return drivers
      configured = upstreams
      const named = upstreams.filter(({ name }) => name !== defaultUpstream)
      const isSame = named.length === made.size && named.every((upstream) => made.has(upstream))
      if (isSame) return drivers
      made = new Map(named.map((upstream) => [upstream, made.get(upstream) ?? make(upstream)]))
      drivers = new Map(Array.from(made, ([{ name }, driver]) => [name, driver]))
      return drivers
    }
    return { now, make }
  })
)

/** Follows the configuration. */
const configuredDefault: Layer.Layer<Upstream, never, ConfigStore | Deadlines | Exchanges> = Layer.effect(
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

/** The upstreams of the configuration: the group `upstream` and the named ones. */
export const layer: Layer.Layer<Upstream, never, ConfigStore | Deadlines | Exchanges> = Layer.merge(
  configuredDefault,
  namedUpstreams
)
