/**
 * The models that the servers of upstreams list, with what the lists say about them: part of the configuration in effect, and not of the raw
 * one.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import { type ServersModel, withListed } from "../domain/routes.ts"
import type { GatewayConfig, UpstreamConfig } from "./GatewayConfig.ts"
import { hasSameServer } from "./upstreams.ts"

export class ListedModels extends Context.Service<ListedModels, {
  /**
   * Sets the models that the server of an upstream lists. They hold until the next call for the upstream or a change of the server's
   * address. Without effect if the upstream has another server by now.
   */
  readonly setListedModels: (upstream: UpstreamConfig, models: ReadonlyArray<ServersModel>) => Effect.Effect<void>
}>()("model-gateway/config/ListedModels") {}

/** `derive` changes the configuration in effect between two updates; the same object changes nothing. */
export const makeListedModels = (
  derive: (f: (config: GatewayConfig) => GatewayConfig) => Effect.Effect<void>
): ListedModels["Service"] => ({
  setListedModels: (upstream, models) =>
    derive((config) => {
      if (!hasSameServer(config.upstreams.get(upstream.name), upstream)) return config
      const route_table = withListed(config.route_table, models, upstream.name)
      return Equal.equals(config.route_table.config.listed, route_table.config.listed)
        ? config
        : { ...config, route_table }
    })
})
