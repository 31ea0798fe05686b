/**
 * Serves the tokens for the admin API.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { Tokens, unknownToken } from "../../config/entries/Tokens.ts"
import type { AdminToken } from "../../config/GatewayConfig.ts"
import { given } from "../../domain/givenText.ts"
import { formatTimestamp } from "../../domain/time.ts"
import { adminBodyOf } from "../adminBody.ts"
import { hasExpired } from "../auth/adminTokens.ts"
import { changed, lastingOf } from "../changes.ts"
import { adminHandlers } from "../handlers.ts"
import { type AdminTokenItem, AdminTokensGroup } from "./Api.ts"

const readToken = adminBodyOf(AdminTokensGroup.endpoints.add, { limit: 64 * 1024 })

const viewToken = (token: AdminToken, now: number): typeof AdminTokenItem.Type => ({
  id: token.id,
  name: token.name,
  role: token.role,
  expires_at: token.expires_at === undefined ? null : formatTimestamp(token.expires_at),
  expired: hasExpired(token, now)
})

export const AdminTokensHandlers = adminHandlers(AdminTokensGroup, function*() {
  const tokens = yield* Tokens
  return {
    list: Effect.fnUntraced(function*() {
      const now = yield* Clock.currentTimeMillis
      return { tokens: (yield* tokens.list).map((token) => viewToken(token, now)) }
    }),
    add: Effect.fnUntraced(function*({ request }) {
      const { expires_at, name, role } = yield* readToken(request)
      const now = yield* Clock.currentTimeMillis
      const adding = tokens.add({ name, role, expires_at: given(expires_at) })
      const saved = yield* changed("a token for the admin API was added", adding)
      if (saved.token === undefined) return yield* unknownToken
      return { success: true, secret: saved.secret, token: viewToken(saved.token, now), ...lastingOf(saved) }
    }),
    remove: Effect.fnUntraced(function*({ params: { id } }) {
      const saved = yield* changed("a token for the admin API was removed", tokens.remove(id))
      return { success: true, id, ...lastingOf(saved) }
    })
  }
})
