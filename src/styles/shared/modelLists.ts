/**
 * The endpoints of a style's list of models: the list, whose text is made once for a configuration, and one of its models.
 */
import * as Effect from "effect/Effect"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import { ConfigStore } from "../../config/ConfigStore.ts"
import type { GatewayConfig } from "../../config/GatewayConfig.ts"
import type { AllowedRoutes } from "../../domain/allowedRoutes.ts"
import { routeNotFound } from "../../domain/routeNotFound.ts"
import { keptText, taggedReply } from "../../http/keptLists.ts"
import { jsonText } from "../../http/reply.ts"
import { visibleModels } from "../../http/visibleModels.ts"

/** A list in a form. Both are JSON. */
export interface ListOfModels {
  readonly list: (config: GatewayConfig, allowed: AllowedRoutes | undefined) => string
  /** The entry of a requested name; `undefined` for a name that the caller may not use. */
  readonly find: (config: GatewayConfig, allowed: AllowedRoutes | undefined, requested: string) => string | undefined
}

/** Makes the endpoints. `form` is the name of the form; `param` is the field that errors name. */
export const makeModelLists = (form: string, param: string, { find, list }: ListOfModels) =>
  Effect.gen(function*() {
    const config = yield* ConfigStore
    const shown = yield* visibleModels
    return {
      list: ({ request }: { readonly request: HttpServerRequest.HttpServerRequest }) =>
        Effect.map(shown, (visible) => {
          const current = config.now()
          return taggedReply(request, keptText(current, visible, form, () => list(current, visible.allowed)))
        }),
      get: (requested: string) =>
        Effect.flatMap(shown, ({ allowed }) => {
          const current = config.now()
          const entry = find(current, allowed, requested)
          return entry === undefined
            ? Effect.fail(routeNotFound(current.route_table, allowed, requested, { inPath: true, param }))
            : Effect.succeed(jsonText(entry))
        })
    }
  })
