/**
 * What the gateway's styles serve beside completions, by the configuration in effect.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Callers } from "../accounts/Callers.ts"
import { ConfigStore } from "../config/ConfigStore.ts"
import { routeNotFound } from "../domain/routeNotFound.ts"
import { resolveRoute } from "../domain/routes.ts"
import { ServerFindings } from "../upstream/ServerFindings.ts"
import { type KeyLimits, modelsOfKey } from "../usage/KeyLimits.ts"
import { clientAddress } from "./clientAddress.ts"
import { CurrentServing } from "./Serving.ts"
import { visibleModels } from "./visibleModels.ts"

export const layerServing: Layer.Layer<never, never, Callers | ConfigStore | KeyLimits | ServerFindings> = Layer.effect(
  CurrentServing,
  Effect.gen(function*() {
    const config = yield* ConfigStore
    const { readAgain } = yield* ServerFindings
    const visible = yield* visibleModels
    return {
      models: config.now,
      visible,
      find: (requested, family, key) => {
        const current = config.now()
        return resolveRoute(current.route_table, family, requested) ??
          routeNotFound(current.route_table, modelsOfKey(current, key), requested)
      },
      readAgain,
      patience: () => config.now().request_timeouts.client * 1000,
      socketAddress: (source) => {
        const { server } = config.now()
        return server.websockets ? clientAddress(source, server) : undefined
      },
      wideInput: () => config.now().compat.wide_input_strict_output
    }
  })
)
