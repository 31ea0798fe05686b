/**
 * Handlers of the model list.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { listedModels, type Model, modelNotFound, modelsCreated, resolveModel } from "../../domain/models.ts"
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
        Effect.map(shown, (isShown) =>
          respond(endpoints.list, {
            object: "list",
            data: listedModels(config.now().model_table).filter(isShown).map(entry)
          })),
      get: ({ params }) =>
        Effect.flatMap(shown, (isShown) => {
          const { model_table } = config.now()
          const model = resolveModel(model_table, params.id)
          return model === undefined || !isShown(model)
            ? Effect.fail(modelNotFound(params.id, model_table))
            : Effect.succeed(respond(endpoints.get, entry(model)))
        })
    } satisfies HandlersOf<typeof ModelsGroup>
  })
).pipe(Layer.provide(Layer.succeed(OpenAiPublicMiddleware, publicMiddleware(OpenAiPublicMiddleware.facts))))
