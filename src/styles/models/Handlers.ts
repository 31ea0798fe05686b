/**
 * Handlers of the model list.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { type Model, modelsCreated } from "../../domain/models.ts"
import { isAllowed, listedRoutes, resolveRoute, routeNotFound } from "../../domain/routes.ts"
import { publicMiddleware } from "../../http/endpointMiddleware.ts"
import { groupRoutes, type HandlersOf } from "../../http/groupRoutes.ts"
import { respond } from "../../http/reply.ts"
import { visibleModels } from "../../http/visibleModels.ts"
import { OpenAiPublicMiddleware } from "../shared/middleware.ts"
import { type ModelEntry, ModelsGroup } from "./Api.ts"

const { endpoints } = ModelsGroup

const entry = (model: Model): typeof ModelEntry.Type => ({
  id: model.id,
  object: "model",
  created: modelsCreated,
  owned_by: "upstream",
  permission: []
})

export const ModelsHandlers = groupRoutes(
  ModelsGroup,
  Effect.gen(function*() {
    const config = yield* ConfigStore
    const shown = yield* visibleModels
    return {
      list: () =>
        Effect.map(shown, (allowed) =>
          respond(endpoints.list, {
            object: "list",
            data: listedRoutes(config.now().route_table, allowed).map(entry)
          })),
      get: ({ params }) =>
        Effect.flatMap(shown, (allowed) => {
          const { route_table } = config.now()
          const model = resolveRoute(route_table, "chat", params.id)
          return model === undefined || !isAllowed(allowed, model)
            ? Effect.fail(routeNotFound(route_table, params.id, { inPath: true }))
            : Effect.succeed(respond(endpoints.get, entry(model)))
        })
    } satisfies HandlersOf<typeof ModelsGroup>
  })
).pipe(Layer.provide(Layer.succeed(OpenAiPublicMiddleware, publicMiddleware(OpenAiPublicMiddleware.facts))))
