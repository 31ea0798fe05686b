/**
 * The routes of groups whose endpoints are asked often, without what the library's builder does for each request.
 *
 * The builder gives a handler all services that were there when it was made, in a copy of them and of the request's own
 * context: a quarter of all memory that a small reply takes. A handler that closes over its services needs none of them, only
 * what modules read by themselves; and that is there already where the server runs with the same services. Replies and errors
 * are made by the handlers and their edge, so nothing is encoded either.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiError from "effect/http-api/HttpApiError"
import type * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import type * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as References from "effect/References"
import * as Schema from "effect/Schema"
import * as Tracer from "effect/Tracer"
import { Deadlines } from "../clock/Deadlines.ts"
import { CurrentRequestWatch } from "../completion/RequestWatch.ts"
import { ConfigStore } from "../config/ConfigStore.ts"
import { CurrentBufferedBytes, CurrentLimits } from "../config/CurrentLimits.ts"
import { CurrentSliceWatch } from "../config/inSlices.ts"

/** What modules read of the running request's context without naming it as a requirement. */
const readByThemselves: ReadonlyArray<Context.Key<unknown, unknown>> = [
  Clock.Clock,
  Tracer.Tracer,
  References.TracerEnabled,
  References.MinimumLogLevel,
  References.CurrentLoggers,
  References.CurrentLogAnnotations,
  CurrentLimits,
  CurrentBufferedBytes,
  CurrentSliceWatch,
  CurrentRequestWatch,
  Deadlines
]

/** Adds to a request's context what differs from that with which its handler was made. */
const completing = (services: Context.Context<never>) => {
  const own = readByThemselves.flatMap((key) => {
    const value = Context.getOrUndefined(services, key)
    return value === undefined ? [] : [{ key, value }]
  })
  const anchor = Context.getOrUndefined(services, ConfigStore)
  /** Whether requests that run with the same configuration have the rest too; looked at once. */
  let agree: boolean | undefined
  return (context: Context.Context<never>): Context.Context<never> => {
    const isSame = anchor !== undefined && Context.getOrUndefined(context, ConfigStore) === anchor
    if (isSame) agree ??= own.every(({ key, value }) => Context.getOrUndefined(context, key) === value)
    if (isSame && agree === true) return context
    let completed = context
    for (const { key, value } of own) {
      if (Context.getOrUndefined(completed, key) !== value) completed = Context.add(completed, key, value)
    }
    return completed
  }
}

type Decode = (input: unknown) => Effect.Effect<unknown, Schema.SchemaError, unknown>

const decoder = (schema: Schema.Constraint | undefined, isQuery = false): Decode | undefined => {
  if (schema === undefined) return undefined
  return Schema.decodeUnknownEffect(isQuery ? Schema.toCodecArrayFromSingle(schema) : schema) as Decode
}

/** What the path, the headers and the query say, by the endpoint's schemas; a fault is a defect that its edge puts into words. */
const argumentsOf = (endpoint: HttpApiEndpoint.Top) => {
  const params = decoder(endpoint.params)
  const headers = decoder(endpoint.headers)
  const query = decoder(endpoint.query, true)
  if (params === undefined && headers === undefined && query === undefined) return undefined
  const part = (kind: "Params" | "Headers" | "Query", decode: Decode | undefined, input: unknown) =>
    decode === undefined ? Effect.undefined : HttpApiError.HttpApiSchemaError.wrap(kind, decode(input))
  return (context: Context.Context<never>, request: HttpServerRequest.HttpServerRequest) =>
    Effect.flatMapEager(
      part("Params", params, Context.getUnsafe(context, HttpRouter.RouteContext).params),
      (params) =>
        Effect.flatMapEager(part("Headers", headers, request.headers), (headers) =>
          Effect.mapEager(
            part("Query", query, Context.getUnsafe(context, HttpServerRequest.ParsedSearchParams)),
            (query) => ({ params, headers, query })
          ))
    )
}

/** What the library's builder makes of a group: its routes, and in the same order what they were made of. Not in its types. */
interface BuiltGroup {
  readonly routes: ReadonlyArray<HttpRouter.Route<unknown, unknown>>
  readonly handlers: ReadonlyMap<string, BuiltHandler>
}

interface BuiltHandler {
  readonly endpoint: HttpApiEndpoint.Top
  readonly handler: Handle
  /** It reads the body by itself, and answers with a response of its own making. */
  readonly isRaw: boolean
}

type Respond = Effect.Effect<HttpServerResponse.HttpServerResponse, unknown, unknown>
type Handle = (request: object) => Respond
type Middleware = (
  handled: Respond,
  options: { readonly group: HttpApiGroup.Constraint; readonly endpoint: HttpApiEndpoint.Top }
) => Respond

/** The route of a raw handler. */
const directRoute = (
  route: HttpRouter.Route<unknown, unknown>,
  group: HttpApiGroup.Constraint,
  { endpoint, handler }: BuiltHandler,
  services: Context.Context<never>
): HttpRouter.Route<unknown, unknown> => {
  const complete = completing(services)
  const decode = argumentsOf(endpoint)
  let handled: Respond = Effect.withFiber((fiber) => {
    const request = Context.getUnsafe(fiber.context, HttpServerRequest.HttpServerRequest)
    if (decode === undefined) return handler({ request, endpoint, group })
    return Effect.flatMap(decode(fiber.context, request), (given) => handler({ request, endpoint, group, ...given }))
  })
  for (const key of endpoint.middlewares) {
    handled = Context.getUnsafe(services, key as unknown as Context.Key<unknown, Middleware>)(handled, {
      group,
      endpoint
    })
  }
  const whole = Effect.withFiber<HttpServerResponse.HttpServerResponse, unknown, unknown>((fiber) => {
    // Whoever serves the request restores its context at the end.
    fiber.setContext(complete(fiber.context))
    return handled
  })
  return HttpRouter.route(route.method, route.path, whole, { uninterruptible: route.uninterruptible })
}

/** Replaces the routes of a built group's raw handlers. Its handlers close over their services: they may require none. */
export const directRoutes =
  (group: HttpApiGroup.Constraint) => <Id, E, R>(built: Layer.Layer<Id, E, R>): Layer.Layer<Id, E, R> =>
    Layer.effectContext(Effect.gen(function*() {
      const context = yield* Layer.build(built)
      const services = yield* Effect.context<never>()
      const made = Context.getUnsafe(
        context as Context.Context<never>,
        group as unknown as Context.Key<unknown, BuiltGroup>
      )
      const handlers = [...made.handlers.values()]
      const routes = made.routes.map((route, i) => {
        const handler = handlers[i]!
        return handler.isRaw ? directRoute(route, group, handler, services) : route
      })
      return Context.makeUnsafe<Id>(new Map([[group.key, { routes, handlers: made.handlers }]]))
    }))
