/**
 * The configured upstreams: each has one driver until its part of the configuration changes.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Layer from "effect/Layer"
import { Deadlines } from "../config/clock/Deadlines.ts"
import { ConfigStore } from "../config/ConfigStore.ts"
import type { UpstreamConfig } from "../config/GatewayConfig.ts"
import { settingsOf } from "../config/upstreams.ts"
import { answerer } from "../contracts/drivers.ts"
import { serverFacts } from "../contracts/vendors.ts"
import { nativeModels } from "../domain/models.ts"
import type { UpstreamModel } from "../domain/UpstreamModel.ts"
import { driverWithConnection } from "./connection.ts"
import { makeEmbeddedDriver } from "./embedded/driver.ts"
import { type ExchangeLimits, Exchanges } from "./Exchange.ts"
import { makers } from "./protocols.ts"
import { LearnedRefusals } from "./server/LearnedRefusals.ts"
import type { ServerOptions } from "./server/ServerOptions.ts"
import type { Driver } from "./Upstream.ts"
import { type Drivers, Upstreams } from "./Upstreams.ts"

const furtherModels = (config: UpstreamConfig): ReadonlyArray<UpstreamModel> =>
  config.models.filter((model) => !nativeModels.some((native) => native.id === model.id))

const limits = ({ timeouts }: UpstreamConfig): ExchangeLimits => ({
  firstByte: timeouts.first_byte * 1000,
  silence: timeouts.silence * 1000
})

/** What the driver of a server is made from. */
const optionsOf = (config: UpstreamConfig, refusals: LearnedRefusals): ServerOptions => ({
  refusals,
  baseUrl: config.base_url,
  server: config.server && serverFacts(config.server.vendor, config.driver, config.server.place),
  models: config.models,
  furtherModels: furtherModels(config),
  contract: config.contract,
  tools: config.tools,
  historyReasoning: config.history_reasoning,
  fields: config.fields,
  wholeReplies: config.whole_replies,
  compaction: config.compaction,
  promptCache: config.prompt_cache,
  upstream: config.name,
  credentialHeader: config.credential_header,
  forwardHeaders: config.forward_headers,
  limits: limits(config)
})

/** A driver, and the settings that it was made from. */
interface Made {
  readonly settings: object
  readonly driver: Driver
}

/** Makes the driver `embedded` of a gateway; tests give one with scripts. */
export const EmbeddedDriver = Context.Reference("model-gateway/upstream/EmbeddedDriver", {
  defaultValue: () => makeEmbeddedDriver
})

const noServer = "The embedded driver calls no server: there is nothing to test"

/** The upstreams of the configuration. Each has one driver until its part of the configuration changes. */
export const layer: Layer.Layer<Upstreams, never, ConfigStore | Deadlines | Exchanges> = Layer.effect(
  Upstreams,
  Effect.gen(function*() {
    const store = yield* ConfigStore
    const exchanges = yield* Exchanges
    const deadlines = yield* Deadlines
    const makeEmbedded = yield* EmbeddedDriver
    const make = (upstream: UpstreamConfig): Effect.Effect<Driver> => {
      const { driver } = upstream
      if (driver !== answerer) {
        // Its accounts with a proxy of their own ask the same server.
        const options = optionsOf(upstream, new LearnedRefusals())
        return Effect.succeed(driverWithConnection(exchanges, upstream, (over) => makers[driver](over, options)))
      }
      return Effect.provideService(
        makeEmbedded({ furtherModels: furtherModels(upstream), limits: limits(upstream) }),
        Deadlines,
        deadlines
      )
    }
    let configured: ReadonlyMap<string, UpstreamConfig> | undefined
    let drivers: Drivers = new Map()
    let made: ReadonlyMap<string, Made> = new Map()
    const remade = (upstream: UpstreamConfig): Effect.Effect<readonly [string, Made]> => {
      const before = made.get(upstream.name)
      const settings = settingsOf(upstream)
      return before !== undefined && Equal.equals(before.settings, settings)
        ? Effect.succeed([upstream.name, before])
        : Effect.map(make(upstream), (driver) => [upstream.name, { settings, driver }])
    }
    const all = Effect.suspend(() => {
      const { upstreams } = store.now()
      if (upstreams === configured) return Effect.succeed(drivers)
      return Effect.map(Effect.forEach(upstreams.values(), remade), (entries) => {
        const isSame = entries.length === made.size && entries.every(([name, one]) => made.get(name) === one)
        configured = upstreams
        made = new Map(entries)
        if (!isSame) drivers = new Map(entries.map(([name, { driver }]) => [name, driver]))
        return drivers
      })
    })
    return {
      all,
      make: (upstream) => {
        if (upstream.driver !== answerer) return make(upstream)
        const { driver = undefined } = made.get(upstream.name) ?? {}
        return driver?.name === answerer ? Effect.succeed(driver) : Effect.fail(noServer)
      }
    }
  })
)
