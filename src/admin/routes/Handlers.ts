/**
 * Serves the routes.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Rehearsal } from "../../completion/Rehearsal.ts"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { ConfigTransfer } from "../../config/ConfigTransfer.ts"
import { Routes } from "../../config/entries/Routes.ts"
import type { GatewayConfig } from "../../config/GatewayConfig.ts"
import { type GatewayError, invalidRequest, shortenName } from "../../domain/GatewayError.ts"
import { normalizeModelName } from "../../domain/models.ts"
import { routeNotFound } from "../../domain/routeNotFound.ts"
import { resolveRoute, targetName } from "../../domain/routes.ts"
import { rehearsalMillis, Rehearsals } from "../../http/Rehearsals.ts"
import { adminBodyOf, jsonObjectBodyOf } from "../adminBody.ts"
import { changed, lastingOf, revisionIn } from "../changes.ts"
import { adminHandlers } from "../handlers.ts"
import { AdminRoutesGroup, type RehearsalRequest, RoutesRequest } from "./Api.ts"

const readRoutes = jsonObjectBodyOf([RoutesRequest])

const viewRoutes = ({ routes, runtime }: GatewayConfig) =>
  Object.fromEntries(routes.map(({ name, ...route }) => [name, { ...route, sticky: route.sticky ?? runtime.sticky }]))

const { endpoints } = AdminRoutesGroup
const readRehearsal = adminBodyOf(endpoints.rehearse)

/** What a rehearsal of the body stands for, or the refusal that names the field. A target may leave out the model, as in the route. */
const rehearsalOf = (
  { route_table }: GatewayConfig,
  { route: asked, without }: typeof RehearsalRequest.Type
): Effect.Effect<Rehearsal, GatewayError> => {
  const route = resolveRoute(route_table, "usual", asked)
  if (route === undefined) {
    return Effect.fail(invalidRequest(`route: ${routeNotFound(route_table, undefined, asked).message}`, "route"))
  }
  const names = new Map(route.targets.map((target) => [normalizeModelName(targetName(target)), targetName(target)]))
  const found = without.map((written) =>
    names.get(normalizeModelName(written.includes("/") ? written : `${written}/${route.id}`))
  )
  const wrong = found.indexOf(undefined)
  return wrong === -1
    ? Effect.succeed({ route: route.id, without: new Set(found.flatMap((name) => name ?? [])) })
    : Effect.fail(invalidRequest(
      `without.${wrong}: "${shortenName(without[wrong]!)}" is no target of "${route.id}", which has ${
        [...names.values()].join(", ")
      }`,
      `without.${wrong}`
    ))
}

export const AdminRoutesHandlers = adminHandlers(AdminRoutesGroup, function*() {
  const store = yield* ConfigStore
  const entries = yield* Routes
  const { configHash } = yield* ConfigTransfer
  const rehearsals = yield* Rehearsals
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
    }),
    rehearse: Effect.fnUntraced(function*({ request }) {
      const rehearsal = yield* rehearsalOf(store.now(), yield* readRehearsal(request))
      const token = yield* rehearsals.open(rehearsal)
      return { token, route: rehearsal.route, expires_at: (yield* Clock.currentTimeMillis) + rehearsalMillis }
    })
  }
})
