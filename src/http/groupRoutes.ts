/**
 * The routes of a group, made from its endpoints with `HttpRouter`: path, parameters, headers and query come from the contract.
 *
 * A handler closes over its services, reads the body and makes the response. Effect's `HttpApiBuilder` copies all services into
 * each request and encodes the handlers' results, which takes a quarter of a small reply's memory.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiError from "effect/http-api/HttpApiError"
import type * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import type * as HttpServerResponse from "effect/http/HttpServerResponse"
import type * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import type { GatewayError } from "../domain/GatewayError.ts"
import type { EndpointOptions } from "./endpointMiddleware.ts"

/** A handler's input: the request, and the decoded parameters, headers and query of its endpoint. */
export type Given<Endpoint extends HttpApiEndpoint.Constraint> = Endpoint["~RequestRaw"]

type Responds<R> = Effect.Effect<HttpServerResponse.HttpServerResponse, GatewayError, R>

/** A handler for each endpoint of a group. */
export type HandlersOf<Group extends HttpApiGroup.Constraint> = {
  readonly [Name in keyof Group["endpoints"]]: (
    given: Given<Group["endpoints"][Name]>
  ) => Responds<HttpRouter.Provided | HttpApiEndpoint.MiddlewareProvides<Group["endpoints"][Name]>>
}

/** A type-level proof that the group is served, which the compiler compares with the contract. */
export interface Served<Identifier extends string> {
  readonly "~model-gateway/http/Served": Identifier
}

type Middleware<Group extends HttpApiGroup.Constraint> = HttpApiEndpoint.Middleware<
  Group["endpoints"][keyof Group["endpoints"]]
>

type Decode = (input: unknown) => Effect.Effect<unknown, Schema.SchemaError>

const decoder = (schema: Schema.Constraint | undefined): Decode | undefined =>
  schema === undefined ? undefined : Schema.decodeUnknownEffect(schema) as Decode

/** Decodes one part of a request. A fault is a defect, which the endpoint's middleware turns into an error. */
const part = (kind: "Params" | "Headers" | "Query", decode: Decode | undefined, input: unknown) =>
  decode === undefined ? Effect.undefined : HttpApiError.HttpApiSchemaError.wrap(kind, decode(input))

/** Makes the decoder of an endpoint's parameters, headers and query. */
const decodeParts = ({ headers, params, query }: HttpApiEndpoint.Top) => {
  const decodeParams = decoder(params)
  const decodeHeaders = decoder(headers)
  const decodeQuery = decoder(query && Schema.toCodecArrayFromSingle(query))
  return (context: Context.Context<never>, request: HttpServerRequest.HttpServerRequest) =>
    Effect.flatMapEager(
      part("Params", decodeParams, Context.getUnsafe(context, HttpRouter.RouteContext).params),
      (params) =>
        Effect.flatMapEager(part("Headers", decodeHeaders, request.headers), (headers) =>
          Effect.mapEager(
            part("Query", decodeQuery, Context.getUnsafe(context, HttpServerRequest.ParsedSearchParams)),
            (query) => ({ params, headers, query })
          ))
    )
}

/** Converts a path of the contract for the router, where a colon within a segment is literal, as in `/:model:countTokens`. */
const routerPath = (path: string) => path.replace(/(?<!\/):/g, "(.*?)::") as HttpRouter.PathInput

type Handled = Effect.Effect<HttpServerResponse.HttpServerResponse, unknown, unknown>
type Routed = Effect.Effect<HttpServerResponse.HttpServerResponse, never, HttpRouter.Provided>
/** Provides the handler's services and turns its failures into responses. */
type EndpointMiddleware = (handled: Handled, options: EndpointOptions) => Routed

const routed = (
  { endpoint, group }: EndpointOptions,
  handle: (given: object) => Responds<unknown>,
  services: Context.Context<never>
): Routed => {
  const decode = decodeParts(endpoint)
  let handled: Handled = Effect.withFiber(({ context }) => {
    const request = Context.getUnsafe(context, HttpServerRequest.HttpServerRequest)
    return Effect.flatMapEager(decode(context, request), (parts) => handle({ request, endpoint, group, ...parts }))
  })
  for (const key of endpoint.middlewares as ReadonlySet<Context.Key<unknown, EndpointMiddleware>>) {
    handled = Context.getUnsafe(services, key)(handled, { group, endpoint })
  }
  return handled as Routed
}

/**
 * True if the request's context already has all services of the routes, as in a server built from the same services. Otherwise
 * they are added to each request.
 */
export const ServerHasServices = Context.Reference<boolean>("model-gateway/http/ServerHasServices", {
  defaultValue: () => false
})

/** Adds the routes of a group to the router. `handlers` runs once. */
export const groupRoutes = <Group extends HttpApiGroup.Constraint, E, R>(
  group: Group,
  handlers: Effect.Effect<HandlersOf<Group>, E, R>
) => {
  const whole = group as unknown as HttpApiGroup.Top
  const routes = HttpRouter.use((router) =>
    Effect.gen(function*() {
      const handle = (yield* handlers) as Record<string, (given: object) => Responds<unknown>>
      const services = Context.omit(Scope.Scope)(yield* Effect.context<Middleware<Group>>())
      const isServed = yield* ServerHasServices
      yield* router.addAll(
        Object.values(whole.endpoints).map((endpoint) => {
          const route = routed({ group: whole, endpoint }, handle[endpoint.identifier]!, services)
          return HttpRouter.route(
            endpoint.method,
            routerPath(endpoint.path),
            isServed ? route : Effect.provideContext(route, services)
          )
        })
      )
    })
  )
  return routes as Layer.Layer<Served<Group["identifier"]>, Layer.Error<typeof routes>, Layer.Services<typeof routes>>
}
