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
import { type CodexModel, type ModelEntry, ModelsGroup } from "./Api.ts"

const { endpoints } = ModelsGroup

const entry = (model: Model): typeof ModelEntry.Type => ({
  id: model.id,
  object: "model",
  created: modelsCreated,
  owned_by: "upstream",
  permission: []
})

const efforts = [
  { effort: "low", description: "Thinks little" },
  { effort: "medium", description: "Thinks as much as most tasks need" },
  { effort: "high", description: "Thinks long" }
] as const

/** An entry for codex. What differs from model to model is what the gateway knows; the rest are the values for a model of any vendor. */
const codexEntry =
  (instructions: string) => ({ id, images, reasoning }: Model, index: number): typeof CodexModel.Type => ({
    slug: id,
    display_name: id,
    description: null,
    supported_reasoning_levels: reasoning === true ? efforts : [],
    shell_type: "unified_exec",
    visibility: "list",
    supported_in_api: true,
    priority: index,
    availability_nux: null,
    upgrade: null,
    base_instructions: instructions,
    supports_reasoning_summaries: reasoning !== false,
    support_verbosity: false,
    default_verbosity: null,
    apply_patch_tool_type: null,
    truncation_policy: { mode: "tokens", limit: 10_000 },
    supports_parallel_tool_calls: true,
    experimental_supported_tools: [],
    ...(images === false ? { input_modalities: ["text"] } : {})
  })

export const ModelsHandlers = groupRoutes(
  ModelsGroup,
  Effect.gen(function*() {
    const config = yield* ConfigStore
    const shown = yield* visibleModels
    return {
      list: ({ query }) =>
        Effect.map(shown, (allowed) => {
          const { clients, route_table } = config.now()
          const listed = listedRoutes(route_table, allowed)
          const instructions = clients.codex_instructions ?? ""
          return respond(endpoints.list, {
            object: "list",
            data: listed.map(entry),
            // An entry without instructions would leave the agent without any.
            ...(query.client_version === undefined
              ? {}
              : { models: instructions === "" ? [] : listed.map(codexEntry(instructions)) })
          })
        }),
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
