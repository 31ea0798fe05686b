/**
 * Serves logins, verification, and sessions of browsers.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { gatewayError } from "../../domain/GatewayError.ts"
import { clientAddress, isForwardedSecure } from "../../http/clientAddress.ts"
import { respond } from "../../http/reply.ts"
import { bearerToken } from "../../http/RequestContext.ts"
import { adminBodyOf } from "../adminBody.ts"
import { adminHandlers } from "../handlers.ts"
import { AdminAuth } from "./AdminAuth.ts"
import { AdminAuthGroup, AdminSessionGroup } from "./Api.ts"
import { adminCredential, isSameOrigin, sessionCookie } from "./sessionCookie.ts"

/** Limited, since anyone may send one. */
const readLogin = adminBodyOf(AdminAuthGroup.endpoints.login, { limit: 64 * 1024 })

export const AdminAuthHandlers = adminHandlers(AdminAuthGroup, function*() {
  const auth = yield* AdminAuth
  const config = yield* ConfigStore
  return {
    login: Effect.fnUntraced(function*({ request }) {
      const body = yield* readLogin(request)
      const login = yield* auth.login(
        body.admin_key,
        body.expire_hours ?? undefined,
        clientAddress(request, config.now().server)
      )
      return { success: true, token: login.token, expires_in: login.expiresIn }
    }),
    verify: Effect.fnUntraced(function*({ request }) {
      const token = bearerToken(request.headers)
      if (token === undefined) {
        return yield* gatewayError("authentication_failed", "Send Authorization: Bearer <JWT>")
      }
      const session = yield* auth.verify(token, clientAddress(request, config.now().server))
      return { valid: true, expires_at: session.expiresAt, remaining_seconds: session.remainingSeconds }
    })
  }
})

/** Limited, since anyone may send one. */
const readSessionLogin = adminBodyOf(AdminSessionGroup.endpoints.create, { limit: 16 * 1024 })

const otherOrigin = gatewayError("authentication_failed", "Sessions are for pages of the gateway's own origin")

type Request = HttpServerRequest.HttpServerRequest

const checkOrigin = (request: Request) => isSameOrigin(request) ? Effect.void : Effect.fail(otherOrigin)

export const AdminSessionHandlers = adminHandlers(AdminSessionGroup, function*() {
  const auth = yield* AdminAuth
  const config = yield* ConfigStore

  /** Whether the browser reaches the gateway by HTTPS. A proxy need not forward the scheme: the browser names it too. */
  const isSecure = (request: Request) =>
    request.headers["origin"]?.startsWith("https:") === true || isForwardedSecure(request, config.now().server)

  /** Sessions exist only with the console. */
  const checkEnabled = ({ method }: Request) =>
    config.now().console.enabled
      ? Effect.void
      : Effect.fail(gatewayError("not_found", `There is no endpoint ${method} /admin/session`))

  return {
    create: Effect.fnUntraced(function*({ endpoint, request }) {
      yield* checkEnabled(request)
      yield* checkOrigin(request)
      const body = yield* readSessionLogin(request)
      const login = yield* auth.login(
        body.admin_key,
        body.expire_hours ?? undefined,
        clientAddress(request, config.now().server)
      )
      const now = Math.floor((yield* Clock.currentTimeMillis) / 1000)
      return HttpServerResponse.setHeader(
        respond(endpoint, { success: true, expires_at: now + login.expiresIn, remaining_seconds: login.expiresIn }),
        "set-cookie",
        sessionCookie(isSecure(request), login.token, login.expiresIn)
      )
    }),
    get: Effect.fnUntraced(function*({ request }) {
      yield* checkEnabled(request)
      const credential = adminCredential(request)
      const session = credential === undefined || !auth.isLogin(credential.token)
        ? undefined
        : yield* auth.verify(credential.token, clientAddress(request, config.now().server)).pipe(
          Effect.orElseSucceed(() => undefined)
        )
      if (session === undefined) return { active: false } as const
      return {
        active: true,
        role: session.role,
        name: session.name,
        expires_at: session.expiresAt,
        remaining_seconds: session.remainingSeconds,
        default_password_warning: auth.usesGeneratedKey()
      } as const
    }),
    end: Effect.fnUntraced(function*({ endpoint, request }) {
      yield* checkEnabled(request)
      yield* checkOrigin(request)
      const credential = adminCredential(request)
      const kept = credential === undefined || (yield* auth.logout(credential.token))
      return HttpServerResponse.setHeader(
        respond(endpoint, { success: true, ...(kept ? {} : { pending: true }) }),
        "set-cookie",
        sessionCookie(isSecure(request), "", 0)
      )
    })
  }
})
