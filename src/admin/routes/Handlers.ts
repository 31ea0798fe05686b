/**
 * Serves the routes.
 */
import * as Effect from "effect/Effect"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { ConfigTransfer } from "../../config/ConfigTransfer.ts"
import type { GatewayConfig } from "../../config/GatewayConfig.ts"
import { jsonObjectBodyOf } from "../adminBody.ts"
import { lastingOf, replaceMap } from "../changes.ts"
import { adminHandlers } from "../handlers.ts"
import { AdminRoutesGroup, RoutesRequest } from "./Api.ts"

const readRoutes = jsonObjectBodyOf([RoutesRequest])

const viewRoutes = ({ routes, runtime }: GatewayConfig) =>
  Object.fromEntries(routes.map(({ name, ...route }) => [name, { ...route, sticky: route.sticky ?? runtime.sticky }]))

export const AdminRoutesHandlers = adminHandlers(AdminRoutesGroup, function*() {
  const store = yield* ConfigStore
  const { configHash } = yield* ConfigTransfer
  return {
    get: Effect.fnUntraced(function*() {
      const revision = yield* configHash
      return { routes: viewRoutes(store.now()), revision }
    }),
    set: Effect.fnUntraced(function*({ headers, request }) {
      const { routes } = yield* readRoutes(request)
      const saved = yield* replaceMap(store, "routes", routes, headers["if-match"])
      return { success: true, routes: viewRoutes(saved.config), ...lastingOf(saved) }
    })
  }
})
