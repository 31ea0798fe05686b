/**
 * The middleware of the admin groups: checks the credential, words errors as `{detail}`, and keeps replies out of caches.
 */
import * as Effect from "effect/Effect"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import { ConfigStore } from "../config/ConfigStore.ts"
import { type GatewayError, gatewayError } from "../domain/GatewayError.ts"
import { clientAddress } from "../http/clientAddress.ts"
import { type EndpointOptions, type Handled, publicMiddleware } from "../http/endpointMiddleware.ts"
import type { CurrentRequestStats } from "../http/RequestContext.ts"
import { AdminAuth } from "./auth/AdminAuth.ts"
import { adminCredential } from "./auth/sessionCookie.ts"
import { AdminMiddleware, AdminOpenMiddleware, CurrentOperator, type Operator } from "./middleware.ts"

const missing = gatewayError("authentication_failed", "Send Authorization: Bearer <JWT or admin key>")

/** Keeps a reply of the admin API out of every cache. */
export const uncached = HttpServerResponse.setHeader("cache-control", "no-store")

const openMiddleware = publicMiddleware(AdminOpenMiddleware.facts)

/** Runs the handler with the operator that `authorize` returns. */
const guardedMiddleware =
  (authorize: (request: HttpServerRequest.HttpServerRequest) => Effect.Effect<Operator, GatewayError>) =>
  (httpEffect: Handled<CurrentRequestStats | CurrentOperator>, options: EndpointOptions) =>
    Effect.map(
      openMiddleware(
        HttpServerRequest.HttpServerRequest.pipe(
          Effect.flatMap(authorize),
          Effect.flatMap((operator) => Effect.provideService(httpEffect, CurrentOperator, operator))
        ),
        options
      ),
      uncached
    )

/** The middleware of all admin groups. */
export const AdminMiddlewares = Layer.mergeAll(
  Layer.effect(
    AdminMiddleware,
    Effect.map(Effect.all([AdminAuth, ConfigStore]), ([auth, config]) =>
      guardedMiddleware((request) => {
        const credential = adminCredential(request)
        // A cookie holds a JWT, never the admin key.
        return credential === undefined || (credential._tag === "Cookie" && !auth.isLogin(credential.token))
          ? Effect.fail(missing)
          : auth.authorize(credential.token, clientAddress(request, config.now().server))
      }))
  ),
  Layer.succeed(
    AdminOpenMiddleware,
    (httpEffect: Handled<CurrentRequestStats>, options: EndpointOptions) =>
      Effect.map(openMiddleware(httpEffect, options), uncached)
  )
)
