/**
 * Login and verification at work.
 */
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import { gatewayError } from "../../domain/GatewayError.ts"
import { addressOf } from "../../http/addressOf.ts"
import { bearerToken } from "../../http/credential.ts"
import { apiId, respond } from "../../http/reply.ts"
import { adminBodyOf } from "../adminBody.ts"
import { AdminAuth } from "./AdminAuth.ts"
import { AdminAuthGroup } from "./Api.ts"

/** Small, since no credential stands before it. */
const readLogin = adminBodyOf(AdminAuthGroup.endpoints.login, { limit: 64 * 1024 })

export const AdminAuthHandlers = HttpApiBuilder.group(
  HttpApi.make(apiId).add(AdminAuthGroup),
  "admin-auth",
  Effect.fnUntraced(function*(handlers) {
    const auth = yield* AdminAuth
    return handlers
      .handleRaw(
        "login",
        Effect.fnUntraced(function*({ endpoint, request }) {
          const body = yield* readLogin(request)
          const login = yield* auth.login(body.admin_key, body.expire_hours ?? undefined, addressOf(request))
          return respond(endpoint, { success: true, token: login.token, expires_in: login.expiresIn })
        })
      )
      .handle(
        "verify",
        Effect.fnUntraced(function*({ request }) {
          const token = bearerToken(request.headers)
          if (token === undefined) {
            return yield* gatewayError("authentication_failed", "Send Authorization: Bearer <JWT>")
          }
          const session = yield* auth.verify(token, addressOf(request))
          return { valid: true, expires_at: session.expiresAt, remaining_seconds: session.remainingSeconds }
        })
      )
  })
)
