/**
 * The configured upstreams: each has one driver until its part of the configuration changes.
 */
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Layer from "effect/Layer"
import { Deadlines } from "../config/clock/Deadlines.ts"
import { ConfigStore } from "../config/ConfigStore.ts"
import type { NamedUpstream, UpstreamConfig } from "../config/GatewayConfig.ts"
import { settingsOf } from "../config/upstreams.ts"
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
import { driverVia } from "./Way.ts"

/** What drivers are made from, of the group `upstream` or a named upstream. */
type DriverConfig = Omit<UpstreamConfig, "timeouts"> & Pick<NamedUpstream, "credential_header" | "name" | "timeouts">

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
        upstream: config.name,
        credentialHeader: config.credential_header,
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
        upstream: config.name,
        credentialHeader: config.credential_header,
        baseUrl: config.base_url,
        models: config.models,
        furtherModels: furtherModels(config),
        historyReasoning: config.history_reasoning,
        fields: config.fields,
        limits: limits(config)
      })
    case "messages":
      return makeMessagesDriver(exchanges, {
        upstream: config.name,
        credentialHeader: config.credential_header,
        baseUrl: config.base_url,
        models: config.models,
        furtherModels: furtherModels(config),
        fields: config.fields,
        limits: limits(config)
      })
  }
}

/** A driver, and the settings that it was made from. */
interface Made {
  readonly settings: object
  readonly driver: Driver
}

const serverDriver = (exchanges: Exchanges["Service"], upstream: NamedUpstream): Driver => {
  const { driver } = upstream
  // The decoder of the configuration allows the embedded driver for `default` alone.
  const config = { ...upstream, driver: driver === "embedded" ? "session" : driver } as const
  return driverVia(exchanges, upstream, (exchanges) => makeServerDriver(exchanges, config))
}

/** The upstreams that the configuration names. An embedder with an `Upstream` of its own adds them by this layer. */
export const namedUpstreams: Layer.Layer<never, never, ConfigStore | Exchanges> = Layer.effect(
  Upstreams,
  Effect.gen(function*() {
    const store = yield* ConfigStore
    const exchanges = yield* Exchanges
    const make = (upstream: NamedUpstream): Driver => serverDriver(exchanges, upstream)
    let configured: ReadonlyArray<NamedUpstream> | undefined
    let drivers: Drivers = new Map()
    let made = new Map<string, Made>()
    const remade = (upstream: NamedUpstream): Made => {
      const before = made.get(upstream.name)
      const settings = settingsOf(upstream)
      return before !== undefined && Equal.equals(before.settings, settings)
        ? before
        : { settings, driver: make(upstream) }
    }
    const now = () => {
      const { upstreams } = store.now()
      if (upstreams === configured) return drivers
      configured = upstreams
      const named = upstreams.filter(({ name }) => name !== defaultUpstream)
      const next = new Map(named.map((upstream) => [upstream.name, remade(upstream)]))
      const isSame = next.size === made.size && named.every(({ name }) => made.get(name) === next.get(name))
      made = next
      if (!isSame) drivers = new Map(Array.from(made, ([name, { driver }]) => [name, driver]))
      return drivers
    }
    return { now, make }
  })
)

/** Stands for `default` in a configuration of other upstreams alone, in which nothing uses it. */
const absentDefault: NamedUpstream = {
  name: defaultUpstream,
  driver: "embedded",
  base_url: "",
  models: [],
  tools: "prompt",
  history_reasoning: "all",
  fields: "pass",
  enabled: false,
  timeouts: { connect: 10, first_byte: 30, silence: 120 },
  headers: [],
  credential_header: undefined,
  proxy: undefined,
  tls: undefined,
  max_inflight: undefined,
  account_max_inflight: undefined,
  account_max_queue: undefined,
  limits: { perAccount: 1, global: 1, queue: 0 }
}

/** The driver of the group `upstream`. */
const configuredDefault: Layer.Layer<Upstream, never, ConfigStore | Deadlines | Exchanges> = Layer.effect(
  Upstream,
  Effect.gen(function*() {
    const store = yield* ConfigStore
    const exchanges = yield* Exchanges
    const deadlines = yield* Deadlines
    const recordings = yield* Recordings
    const make = (upstream: NamedUpstream): Effect.Effect<Driver> =>
      upstream.driver === "embedded"
        ? makeEmbeddedDriver({ furtherModels: furtherModels(upstream), limits: limits(upstream) }).pipe(
          Effect.provideService(Recordings, recordings),
          Effect.provideService(Deadlines, deadlines)
        )
        : Effect.succeed(serverDriver(exchanges, upstream))
    let configured: ReadonlyArray<NamedUpstream> | undefined
    let made: Made | undefined
    const driver = Effect.suspend(() => {
      const { upstreams } = store.now()
      if (upstreams === configured && made !== undefined) return Effect.succeed(made.driver)
      const own = upstreams.find(({ name }) => name === defaultUpstream) ?? absentDefault
      const settings = settingsOf(own)
      if (made !== undefined && Equal.equals(made.settings, settings)) {
        configured = upstreams
        return Effect.succeed(made.driver)
      }
      return Effect.map(make(own), (driver) => {
        configured = upstreams
        made = { settings, driver }
        return driver
      })
    })
    return Upstream.of({ driver })
  })
)

/** The upstreams of the configuration: the group `upstream` and the named ones. */
export const layer: Layer.Layer<Upstream, never, ConfigStore | Deadlines | Exchanges> = Layer.merge(
  configuredDefault,
  namedUpstreams
)
