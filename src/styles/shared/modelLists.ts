/**
 * The endpoints of a style's list of models: the list, whose text is made once for a configuration, and one of its models.
 */
import * as Effect from "effect/Effect"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import type { AllowedRoutes } from "../../domain/allowedRoutes.ts"
import { routeNotFound } from "../../domain/routeNotFound.ts"
import { keptText, taggedReply } from "../../http/keptLists.ts"
import { jsonText } from "../../http/reply.ts"
import { CurrentServing, type ServedModels } from "../../http/Serving.ts"

/** A list in a form. Both are JSON. */
export interface ListOfModels {
  readonly list: (models: ServedModels, allowed: AllowedRoutes | undefined) => string
  /** The entry of a requested name; `undefined` for a name that the caller may not use. */
  readonly find: (models: ServedModels, allowed: AllowedRoutes | undefined, requested: string) => string | undefined
}

/** Makes the endpoints. `form` is the name of the form; `param` is the field that errors name. */
export const makeModelLists = (form: string, param: string, { find, list }: ListOfModels) =>
  Effect.gen(function*() {
    const { models, visible: shown } = yield* CurrentServing
    return {
      list: ({ request }: { readonly request: HttpServerRequest.HttpServerRequest }) =>
        Effect.map(shown, (visible) => {
          const current = models()
          return taggedReply(request, keptText(current, visible, form, () => list(current, visible.allowed)))
        }),
      get: (requested: string) =>
        Effect.flatMap(shown, ({ allowed }) => {
          const current = models()
          const entry = find(current, allowed, requested)
          return entry === undefined
            ? Effect.fail(routeNotFound(current.route_table, allowed, requested, { inPath: true, param }))
            : Effect.succeed(jsonText(entry))
        })
    }
  })
