/**
 * The middleware of the admin groups: checks the credential, words errors as `{detail}`, and keeps replies out of caches.
 */
import * as Effect from "effect/Effect"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import { type GatewayError, gatewayError } from "../domain/GatewayError.ts"
import { type EdgeOptions, type Handled, publicEdge } from "../http/edge.ts"
import { addressOf, type CurrentRequest } from "../http/Request.ts"
import { AdminAuth } from "./auth/AdminAuth.ts"
import { adminCredential } from "./auth/sessionCookie.ts"
import { AdminEdge, AdminOpenEdge, CurrentOperator, type Operator } from "./edges.ts"

const missing = gatewayError("authentication_failed", "Send Authorization: Bearer <JWT or admin key>")

/** Keeps a reply of the admin API out of every cache. */
export const uncached = HttpServerResponse.setHeader("cache-control", "no-store")

const openEdge = publicEdge(AdminOpenEdge.facts)

/** Runs the handler with the operator that `authorize` returns. */
const guardedEdge =
  (authorize: (request: HttpServerRequest.HttpServerRequest) => Effect.Effect<Operator, GatewayError>) =>
  (httpEffect: Handled<CurrentRequest | CurrentOperator>, options: EdgeOptions) =>
    Effect.map(
      openEdge(
        HttpServerRequest.HttpServerRequest.pipe(
          Effect.flatMap(authorize),
          Effect.flatMap((operator) => Effect.provideService(httpEffect, CurrentOperator, operator))
        ),
        options
      ),
      uncached
    )

/** The middleware of all admin groups. */
export const AdminEdges = Layer.mergeAll(
  Layer.effect(
    AdminEdge,
    Effect.map(AdminAuth, (auth) =>
      guardedEdge((request) => {
        const credential = adminCredential(request)
        // A cookie holds a JWT, never the admin key.
        return credential === undefined || (credential._tag === "Cookie" && !auth.isLogin(credential.token))
          ? Effect.fail(missing)
          : auth.authorize(credential.token, addressOf(request))
      }))
  ),
  Layer.succeed(
    AdminOpenEdge,
    (httpEffect: Handled<CurrentRequest>, options: EdgeOptions) => Effect.map(openEdge(httpEffect, options), uncached)
  )
)
