/**
 * Serves the routes.
 */
import * as Effect from "effect/Effect"
import { ConfigStore } from "../../config/ConfigStore.ts"
import type { GatewayConfig } from "../../config/GatewayConfig.ts"
import { isJsonObject } from "../../config/json.ts"
import { setField } from "../../config/rawConfig.ts"
import { invalidRequest } from "../../domain/GatewayError.ts"
import { jsonObjectBodyOf } from "../adminBody.ts"
import { changed, lastingOf, revisionIn } from "../changes.ts"
import { adminHandlers } from "../handlers.ts"
import { AdminRoutesGroup, RoutesRequest } from "./Api.ts"

const readRoutes = jsonObjectBodyOf([RoutesRequest])

const viewRoutes = ({ routes, runtime }: GatewayConfig) =>
  Object.fromEntries(routes.map(({ name, ...route }) => [name, { ...route, sticky: route.sticky ?? runtime.sticky }]))

export const AdminRoutesHandlers = adminHandlers(AdminRoutesGroup, function*() {
  const store = yield* ConfigStore
  return {
    get: Effect.fnUntraced(function*() {
      const revision = yield* store.configHash
      return { routes: viewRoutes(store.now()), revision }
    }),
    set: Effect.fnUntraced(function*({ headers, request }) {
      const { routes } = yield* readRoutes(request)
      if (routes === undefined) return yield* invalidRequest("routes is required", "routes")
      const isEmpty = isJsonObject(routes) && Object.keys(routes).length === 0
      const saved = yield* changed(
        "the routes were changed",
        store.update((raw) => Effect.succeed(setField(raw, ["routes"], isEmpty ? undefined : routes)), {
          expected: revisionIn(headers["if-match"])
        })
      )
      return { success: true, routes: viewRoutes(saved.config), ...lastingOf(saved) }
    })
  }
})
