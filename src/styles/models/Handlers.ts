/**
 * The model list at work.
 */
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import { ConfigStore } from "../../config/ConfigStore.ts"
import type { Model } from "../../domain/models.ts"
import { listedModels, modelsCreated, resolveModel } from "../../domain/models.ts"
import { apiId, modelNotFound } from "../../http/reply.ts"
import type { ModelEntry } from "./Api.ts"
import { ModelsGroup } from "./Api.ts"

const entry = (model: Model): typeof ModelEntry.Type => ({
  id: model.id,
  object: "model",
  created: modelsCreated,
  owned_by: "upstream",
  permission: []
})

export const ModelsHandlers = HttpApiBuilder.group(
  HttpApi.make(apiId).add(ModelsGroup),
  "models",
  Effect.fnUntraced(function*(handlers) {
    const config = yield* ConfigStore
    return handlers
      .handle("list", () =>
        Effect.sync(() => ({
          object: "list" as const,
          data: listedModels(config.unsafeCurrent().model_table).map(entry)
        })))
      .handle("get", ({ params }) => {
        const model = resolveModel(config.unsafeCurrent().model_table, params.id)
        return model === undefined ? Effect.fail(modelNotFound(params.id)) : Effect.succeed(entry(model))
      })
  })
)
