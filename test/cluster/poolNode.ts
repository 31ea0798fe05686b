/** A node of a cluster in the test's process: its pool, its store and its configuration. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Accounts } from "../../src/accounts/Accounts.ts"
import { UpstreamActivity } from "../../src/accounts/UpstreamActivity.ts"
import { Store } from "../../src/cluster/store/Store.ts"
import type { StoreInvalid } from "../../src/cluster/store/StoreShape.ts"
import { AdminCredentials } from "../../src/config/AdminCredentials.ts"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import { Environment } from "../../src/config/Environment.ts"
import type { RawConfig } from "../../src/config/json.ts"
import type { Driver } from "../../src/upstream/Upstream.ts"
import { type Drivers, Upstreams } from "../../src/upstream/Upstreams.ts"
import { withVariables } from "../config/support.ts"
import type { RedisServer } from "../support/redisServer.ts"
import { untilTrue } from "../support/until.ts"
import { storeLayer } from "./support.ts"

/** A node with its own pool over the shared store. `named` are the drivers of named upstreams. */
export const poolNode = Effect.fnUntraced(function*(
  server: RedisServer,
  id: string,
  config: RawConfig,
  driver: Driver,
  layer: Layer.Layer<Store, StoreInvalid> = storeLayer(server, id),
  named: Drivers = new Map()
) {
  const raw: RawConfig = { upstream: { driver: "session", base_url: "http://127.0.0.1:9" }, keys: ["k"], ...config }
  const drivers: Drivers = new Map([["default", driver], ...named])
  const context = yield* Layer.build(
    Accounts.layerShared.pipe(
      Layer.provideMerge(ConfigStore.layerShared),
      Layer.provideMerge(layer),
      Layer.provide(Layer.succeed(Upstreams, { all: Effect.succeed(drivers), make: () => Effect.succeed(driver) })),
      Layer.provide(Environment.layer),
      Layer.provide(withVariables({ GATEWAY_CONFIG_JSON: JSON.stringify(raw) })),
      Layer.provide(NodeServices.layer)
    )
  )
  const store = Context.get(context, Store)
  const configuration = Context.get(context, ConfigStore)
  return {
    pool: { ...Context.get(context, Accounts), ...Context.get(context, UpstreamActivity) },
    store,
    configuration,
    endedLogins: Context.get(context, AdminCredentials).endedLogins,
    change: (changes: RawConfig) => configuration.update((raw) => Effect.succeed({ ...raw, ...changes }))
  }
})

/** Waits until no slot is in use and nobody waits. */
export const idle = (pool: Accounts["Service"]) =>
  untilTrue(Effect.map(pool.status, ({ in_use, waiting }) => in_use === 0 && waiting === 0))
