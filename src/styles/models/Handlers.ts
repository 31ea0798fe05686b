/**
 * Handlers of the model list.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as Layer from "effect/Layer"
import { ConfigStore } from "../../config/ConfigStore.ts"
import type { GatewayConfig } from "../../config/GatewayConfig.ts"
import {
  anthropicModel,
  idForClaudeCode,
  isFirst,
  pageOf,
  type PageQuery
} from "../../contracts/messages/anthropicModels.ts"
import { isAllowed } from "../../domain/allowedRoutes.ts"
import { catalogueOf } from "../../domain/catalogue.ts"
import { appIn } from "../../domain/clientIdentity.ts"
import { GatewayError } from "../../domain/GatewayError.ts"
import { listedPrice } from "../../domain/listedPrice.ts"
import { hasNoNames } from "../../domain/nameTable.ts"
import { listedRoutes } from "../../domain/routeLists.ts"
import { routeNotFound } from "../../domain/routeNotFound.ts"
import { resolveRoute, type Route } from "../../domain/routes.ts"
import { publicMiddleware } from "../../http/endpointMiddleware.ts"
import { groupRoutes, type HandlersOf } from "../../http/groupRoutes.ts"
import { keptText, taggedReply, taggedText } from "../../http/keptLists.ts"
import { bodyText } from "../../http/reply.ts"
import type { Visible } from "../../http/Serving.ts"
import { visibleModels } from "../../http/visibleModels.ts"
import { isAnthropicForm, ModelsMiddleware } from "../shared/middleware.ts"
import { ModelsGroup } from "./Api.ts"
import { codexModel, openAiModel } from "./entries.ts"

const { endpoints } = ModelsGroup

type Headers = HttpServerRequest.HttpServerRequest["headers"]

/** The last value of a parameter that may be repeated. */
const one = (value: string | ReadonlyArray<string> | undefined): string | undefined =>
  Array.isArray(value) ? value.at(-1) : value as string | undefined

const sameId = (id: string): string => id

/** What gives a model its id in Anthropic's form. */
const idFor = (headers: Headers) => appIn(headers) === "claude-code" ? idForClaudeCode : sameId

const anthropicList = (config: GatewayConfig, { allowed }: Visible, idOf: (id: string) => string) => {
  const catalogue = catalogueOf(config)
  return listedRoutes(config.route_table, allowed).map((route) =>
    anthropicModel(idOf(route.id), route.id, catalogue.factsOf(route))
  )
}

/** An entry with the price at a time in Unix milliseconds. */
const openAiEntry = (config: GatewayConfig, { hasKey }: Visible, now: number, route: Route) =>
  openAiModel(
    route.id,
    catalogueOf(config).factsOf(route),
    hasKey ? listedPrice(config.prices, now, route) : undefined
  )

const openAiList = (config: GatewayConfig, visible: Visible, now: number, isForCodex: boolean) => {
  const { clients, route_table } = config
  const listed = listedRoutes(route_table, visible.allowed)
  const instructions = clients.codex_instructions ?? ""
  const catalogue = catalogueOf(config)
  return bodyText(endpoints.list, {
    object: "list",
    data: listed.map((route) => openAiEntry(config, visible, now, route)),
    // An entry without instructions would leave the agent without any.
    ...(isForCodex
      ? {
        models: instructions === ""
          ? []
          : listed.map((route, place) => codexModel(route, catalogue.factsOf(route), place, instructions))
      }
      : {})
  })
}

export const ModelsHandlers = groupRoutes(
  ModelsGroup,
  Effect.gen(function*() {
    const config = yield* ConfigStore
    const shown = yield* visibleModels
    const clock = yield* Clock.Clock
    return {
      list: ({ query: { after_id, before_id, client_version, limit }, request }) =>
        Effect.flatMap(shown, (visible) => {
          const current = config.now()
          if (!isAnthropicForm(request.headers)) {
            const isForCodex = client_version !== undefined
            const render = () => openAiList(current, visible, clock.currentTimeMillisUnsafe(), isForCodex)
            // A price may begin at any time, so a list with prices is not kept.
            return Effect.succeed(
              visible.hasKey && !hasNoNames(current.prices)
                ? taggedText(request, render())
                : taggedReply(request, keptText(current, visible, isForCodex ? "codex" : "openai", render))
            )
          }
          const idOf = idFor(request.headers)
          const query: PageQuery = { limit: one(limit), after_id: one(after_id), before_id: one(before_id) }
          const pageFor = (query: PageQuery) => pageOf(anthropicList(current, visible, idOf), query)
          if (isFirst(query)) {
            const form = idOf === idForClaudeCode ? "claude-code" : "anthropic"
            const render = () => JSON.stringify(pageFor({}))
            return Effect.succeed(taggedReply(request, keptText(current, visible, form, render)))
          }
          const page = pageFor(query)
          return page instanceof GatewayError
            ? Effect.fail(page)
            : Effect.succeed(taggedText(request, bodyText(endpoints.list, page)))
        }),
      get: ({ params, request }) =>
        Effect.flatMap(shown, (visible) => {
          const current = config.now()
          const { route_table } = current
          const route = resolveRoute(route_table, "usual", params.id)
          if (route === undefined || !isAllowed(visible.allowed, route)) {
            return Effect.fail(routeNotFound(route_table, visible.allowed, params.id, { inPath: true }))
          }
          const facts = catalogueOf(current).factsOf(route)
          const text = isAnthropicForm(request.headers)
            ? bodyText(endpoints.get, anthropicModel(idFor(request.headers)(route.id), route.id, facts))
            : bodyText(endpoints.get, openAiEntry(current, visible, clock.currentTimeMillisUnsafe(), route))
          return Effect.succeed(taggedText(request, text))
        })
    } satisfies HandlersOf<typeof ModelsGroup>
  })
).pipe(Layer.provide(Layer.succeed(ModelsMiddleware, publicMiddleware(ModelsMiddleware.facts))))
