/**
 * How the groups of the admin API are served.
 */
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import type * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import type * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import type * as HttpRouter from "effect/http/HttpRouter"
import type * as Layer from "effect/Layer"
import { type RawConfig, stringifyConfig } from "../config/json.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import { apiId, jsonText, type ReplyBody } from "../http/reply.ts"

type EndpointsOf<Group extends HttpApiGroup.Constraint> = Group["endpoints"][keyof Group["endpoints"]]

/**
 * A handler for each endpoint of a group. It returns the endpoint's success, which the library encodes, or a response. A
 * body is left to the handler (`adminBody.ts`).
 */
export type HandlersOf<Group extends HttpApiGroup.Constraint> = {
  readonly [Name in keyof Group["endpoints"]]: HttpApiEndpoint.HandlerRaw<
    Group["endpoints"][Name],
    GatewayError,
    HttpRouter.Provided | HttpApiEndpoint.MiddlewareProvides<Group["endpoints"][Name]>
  >
}

/** Serves a group of the admin API; `make` runs once. */
export const adminHandlers = <
  Group extends HttpApiGroup.Constraint,
  Eff extends Effect.Effect<unknown, never, unknown>
>(
  group: Group,
  make: () => Generator<Eff, HandlersOf<Group>, never>
) => {
  const api = HttpApi.make(apiId).add(group as unknown as HttpApiGroup.Top)
  const layer = HttpApiBuilder.group(api, group.identifier, (handlers) =>
    Effect.map(Effect.gen(make), (byName) => {
      for (const [name, handler] of Object.entries(byName)) handlers.handleRaw(name, handler as never)
      return handlers
    }) as never)
  return layer as Layer.Layer<
    HttpApiGroup.Service<typeof apiId, Group["identifier"]>,
    never,
    Effect.Services<Eff> | HttpApiEndpoint.Middleware<EndpointsOf<Group>>
  >
}

/**
 * The reply of an endpoint with a list that may be very long: written in slices, so that other requests run in between. The
 * compiler checks the body against the endpoint's success.
 */
export const respondInSlices = <Endpoint extends HttpApiEndpoint.Constraint>(
  _endpoint: Endpoint,
  body: ReplyBody<Endpoint> & object
) => Effect.map(stringifyConfig(body as RawConfig, "compact"), (text) => jsonText(text))
