/**
 * The prices of the configuration.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Schema from "effect/Schema"
import type { GatewayError } from "../../domain/GatewayError.ts"
import { ConfigStore, type Saved, type UpdateError, type UpdateOptions } from "../ConfigStore.ts"
import { replaceMap } from "./replaceMap.ts"

export class Prices extends Context.Service<Prices, {
  /**
   * Replaces all prices, which have the form of `prices` in the file. Fails with a `ConfigInvalid` for a wrong price, and otherwise as
   * `ConfigStore.update` does.
   */
  readonly set: (
    prices: Schema.Json | undefined,
    options?: UpdateOptions
  ) => Effect.Effect<Saved, UpdateError | GatewayError>
}>()("model-gateway/config/Prices") {
  static readonly layer: Layer.Layer<Prices, never, ConfigStore> = Layer.effect(
    Prices,
    Effect.map(ConfigStore, (store) => ({ set: (prices, options) => replaceMap(store, "prices", prices, options) }))
  )
}
