/**
 * Serves the routes.
 */
import * as Effect from "effect/Effect"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { ConfigTransfer } from "../../config/ConfigTransfer.ts"
import { Routes } from "../../config/entries/Routes.ts"
import type { GatewayConfig } from "../../config/GatewayConfig.ts"
import { jsonObjectBodyOf } from "../adminBody.ts"
import { changed, lastingOf, revisionIn } from "../changes.ts"
import { adminHandlers } from "../handlers.ts"
import { AdminRoutesGroup, RoutesRequest } from "./Api.ts"

const readRoutes = jsonObjectBodyOf([RoutesRequest])

const viewRoutes = ({ routes, runtime }: GatewayConfig) =>
  Object.fromEntries(routes.map(({ name, ...route }) => [name, { ...route, sticky: route.sticky ?? runtime.sticky }]))

export const AdminRoutesHandlers = adminHandlers(AdminRoutesGroup, function*() {
  const store = yield* ConfigStore
  const entries = yield* Routes
  const { configHash } = yield* ConfigTransfer
  return {
    get: Effect.fnUntraced(function*() {
      const revision = yield* configHash
      return { routes: viewRoutes(store.now()), revision }
    }),
    set: Effect.fnUntraced(function*({ headers, request }) {
      const { routes } = yield* readRoutes(request)
      const setting = entries.set(routes, { expected: revisionIn(headers["if-match"]) })
      const saved = yield* changed("the routes were changed", setting)
      return { success: true, routes: viewRoutes(saved.config), ...lastingOf(saved) }
    })
  }
})
