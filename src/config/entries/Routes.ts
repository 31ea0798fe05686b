/**
 * The routes of the configuration.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Schema from "effect/Schema"
import type { GatewayError } from "../../domain/GatewayError.ts"
import { ConfigStore, type Saved, type UpdateError, type UpdateOptions } from "../ConfigStore.ts"
import { replaceMap } from "./replaceMap.ts"

export class Routes extends Context.Service<Routes, {
  /**
   * Replaces all routes, which have the form of `routes` in the file. Fails with a `ConfigInvalid` for a wrong route, and otherwise as
   * `ConfigStore.update` does.
   */
  readonly set: (
    routes: Schema.Json | undefined,
    options?: UpdateOptions
  ) => Effect.Effect<Saved, UpdateError | GatewayError>
}>()("model-gateway/config/Routes") {
  static readonly layer: Layer.Layer<Routes, never, ConfigStore> = Layer.effect(
    Routes,
    Effect.map(ConfigStore, (store) => ({ set: (routes, options) => replaceMap(store, "routes", routes, options) }))
  )
}
