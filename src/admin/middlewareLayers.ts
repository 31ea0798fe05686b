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
import { CurrentRequest } from "../http/RequestContext.ts"
import { AdminAuth } from "./auth/AdminAuth.ts"
import { adminCredential } from "./auth/sessionCookie.ts"
import { ChangeLog } from "./history/ChangeLog.ts"
import { AdminMiddleware, AdminOpenMiddleware, CurrentOperator, type Operator } from "./middleware.ts"
import { roleOf } from "./roles.ts"

const missing = gatewayError("authentication_failed", "Send Authorization: Bearer <JWT or admin key>")

const notForViewers = gatewayError("role_not_allowed", "The credential has the role viewer; this needs the role admin")

/** Keeps a reply of the admin API out of every cache. */
export const uncached = HttpServerResponse.setHeader("cache-control", "no-store")

const openMiddleware = publicMiddleware(AdminOpenMiddleware.facts)

/** Runs the handler with the operator that `authorize` returns. */
const guardedMiddleware = (
  log: ChangeLog["Service"],
  authorize: (request: HttpServerRequest.HttpServerRequest) => Effect.Effect<Operator, GatewayError>
) =>
(httpEffect: Handled<CurrentRequest | CurrentOperator>, options: EndpointOptions) =>
  Effect.map(
    openMiddleware(
      Effect.gen(function*() {
        const request = yield* HttpServerRequest.HttpServerRequest
        const operator = yield* authorize(request)
        if (operator.role === "viewer" && roleOf(options.group.identifier, options.endpoint.identifier) === "admin") {
          return yield* notForViewers
        }
        const { client } = yield* CurrentRequest
        const origin = { who: operator.who, address: client ?? null }
        return yield* Effect.provideService(httpEffect, CurrentOperator, {
          ...operator,
          record: (action, done) => log.record(origin, action, done)
        })
      }),
      options
    ),
    uncached
  )

/** The middleware of all admin groups. */
export const AdminMiddlewares = Layer.mergeAll(
  Layer.effect(
    AdminMiddleware,
    Effect.gen(function*() {
      const auth = yield* AdminAuth
      const config = yield* ConfigStore
      return guardedMiddleware(yield* ChangeLog, (request) => {
        const credential = adminCredential(request)
        // A cookie holds a JWT, never the admin key.
        return credential === undefined || (credential._tag === "Cookie" && !auth.isLogin(credential.token))
          ? Effect.fail(missing)
          : auth.authorize(credential.token, clientAddress(request, config.now().server))
      })
    })
  ),
  Layer.succeed(
    AdminOpenMiddleware,
    (httpEffect: Handled<CurrentRequest>, options: EndpointOptions) =>
      Effect.map(openMiddleware(httpEffect, options), uncached)
  )
)
