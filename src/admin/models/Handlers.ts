/**
 * Serves the catalogue of models.
 */
import * as Effect from "effect/Effect"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { catalogueOf } from "../../domain/catalogue.ts"
import { cataloguedRoutes, targetName } from "../../domain/routes.ts"
import { adminHandlers, respondInSlices } from "../handlers.ts"
import { AdminModelsGroup } from "./Api.ts"

const { endpoints } = AdminModelsGroup

export const AdminModelsHandlers = adminHandlers(AdminModelsGroup, function*() {
  const store = yield* ConfigStore
  return {
    list: Effect.fnUntraced(function*() {
      const config = store.now()
      const catalogue = catalogueOf(config)
      return yield* respondInSlices(endpoints.list, {
        models: cataloguedRoutes(config.route_table).map((route) => ({
          id: route.id,
          hidden: route.hidden === true,
          targets: route.targets.map(targetName),
          facts: catalogue.ofRoute(route)
        }))
      })
    })
  }
})
