/**
 * Sessions of browsers at work.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { gatewayError } from "../../domain/GatewayError.ts"
import { addressOf } from "../../http/addressOf.ts"
import { apiId, respond } from "../../http/reply.ts"
import { adminBodyOf } from "../adminBody.ts"
import { AdminAuth } from "../auth/AdminAuth.ts"
import { adminCredential, isSameOrigin, sessionCookie } from "../auth/sessionCookie.ts"
import { AdminSessionGroup } from "./Api.ts"

/** Small, since no credential stands before it. */
const readLogin = adminBodyOf(AdminSessionGroup.endpoints.create, { limit: 16 * 1024 })

const otherOrigin = gatewayError("authentication_failed", "Sessions are for pages of the gateway's own origin")

type Request = HttpServerRequest.HttpServerRequest

const checkOrigin = (request: Request) => isSameOrigin(request) ? Effect.void : Effect.fail(otherOrigin)

export const AdminSessionHandlers = HttpApiBuilder.group(
  HttpApi.make(apiId).add(AdminSessionGroup),
  "admin-session",
  Effect.fnUntraced(function*(handlers) {
    const auth = yield* AdminAuth
    const config = yield* ConfigStore

    /** Without the console nobody has a session. */
    const checkEnabled = ({ method }: Request) =>
      config.unsafeCurrent().console.enabled
        ? Effect.void
        : Effect.fail(gatewayError("not_found", `There is no route ${method} /admin/session`))

    return handlers
      .handleRaw(
        "create",
        Effect.fnUntraced(function*({ endpoint, request }) {
          yield* checkEnabled(request)
          yield* checkOrigin(request)
          const body = yield* readLogin(request)
          const login = yield* auth.login(body.admin_key, body.expire_hours ?? undefined, addressOf(request))
          const now = Math.floor((yield* Clock.currentTimeMillis) / 1000)
          return HttpServerResponse.setHeader(
            respond(endpoint, { success: true, expires_at: now + login.expiresIn, remaining_seconds: login.expiresIn }),
            "set-cookie",
            sessionCookie(request, login.token, login.expiresIn)
          )
        })
      )
      .handle(
        "get",
        Effect.fnUntraced(function*({ request }) {
          yield* checkEnabled(request)
          const credential = adminCredential(request)
          const session = credential === undefined || !auth.isLogin(credential.token)
            ? undefined
            : yield* auth.verify(credential.token, addressOf(request)).pipe(Effect.orElseSucceed(() => undefined))
          if (session === undefined) return { active: false } as const
          return {
            active: true,
            expires_at: session.expiresAt,
            remaining_seconds: session.remainingSeconds,
            default_password_warning: config.adminKeyGenerated &&
              config.unsafeCurrent().admin.password_hash === undefined
          } as const
        })
      )
      .handle(
        "end",
        Effect.fnUntraced(function*({ endpoint, request }) {
          yield* checkEnabled(request)
          yield* checkOrigin(request)
          const credential = adminCredential(request)
          const kept = credential === undefined || (yield* auth.logout(credential.token))
          return HttpServerResponse.setHeader(
            respond(endpoint, { success: true, ...(kept ? {} : { pending: true }) }),
            "set-cookie",
            sessionCookie(request, "", 0)
          )
        })
      )
  })
)
