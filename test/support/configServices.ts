/** The services of a configuration, for tests. */
import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import { AdminCredentials } from "../../src/config/AdminCredentials.ts"
import { ConfigOrigin } from "../../src/config/ConfigOrigin.ts"
import { type ConfigServices, ConfigStore } from "../../src/config/ConfigStore.ts"
import { ConfigTransfer } from "../../src/config/ConfigTransfer.ts"
import type { RawConfig } from "../../src/config/json.ts"
import { LastingEncryption } from "../../src/config/LastingEncryption.ts"
import { SharedRevision } from "../../src/config/sharedConfig.ts"

/** A configuration with its own transfers, even where an effect with one provides another one. */
export const withTransfer = <E, R>(layer: Layer.Layer<ConfigServices, E, R>) =>
  Layer.provideMerge(Layer.fresh(ConfigTransfer.layer), layer)

/** A configuration in memory with its transfers. */
export const transferJson = (raw: RawConfig = {}) => withTransfer(ConfigStore.layerJson(raw))

/** All services of a configuration as one object. */
export const servicesIn = (context: Context.Context<ConfigServices | ConfigTransfer>) => ({
  ...Context.get(context, ConfigStore),
  ...Context.get(context, ConfigOrigin),
  ...Context.get(context, ConfigTransfer),
  ...Context.get(context, AdminCredentials),
  ...Context.get(context, SharedRevision),
  encryption: Context.get(context, LastingEncryption)
})
