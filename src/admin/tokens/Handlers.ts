/**
 * Serves the tokens for the admin API.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import { randomBytes } from "node:crypto"
import { ConfigStore } from "../../config/ConfigStore.ts"
import type { AdminToken } from "../../config/GatewayConfig.ts"
import { isJsonObject, type RawConfig } from "../../config/json.ts"
import { setField } from "../../config/rawConfig.ts"
import { gatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import { formatTimestamp, parseTimestamp } from "../../domain/time.ts"
import { adminBodyOf, given } from "../adminBody.ts"
import { hasExpired, newSecret } from "../auth/adminTokens.ts"
import { changed, lastingOf } from "../changes.ts"
import { adminHandlers } from "../handlers.ts"
import { type AdminTokenItem, AdminTokensGroup } from "./Api.ts"

const readToken = adminBodyOf(AdminTokensGroup.endpoints.add, { limit: 64 * 1024 })

const unknownToken = gatewayError("not_found", "No such token is configured")

const entriesOf = ({ admin }: RawConfig): ReadonlyArray<Schema.Json> => {
  const tokens = isJsonObject(admin) ? admin["tokens"] : undefined
  return Array.isArray(tokens) ? tokens : []
}

const viewToken = (token: AdminToken, now: number): typeof AdminTokenItem.Type => ({
  id: token.id,
  name: token.name,
  role: token.role,
  expires_at: token.expires_at === undefined ? null : formatTimestamp(token.expires_at),
  expired: hasExpired(token, now)
})

export const AdminTokensHandlers = adminHandlers(AdminTokensGroup, function*() {
  const store = yield* ConfigStore
  return {
    list: Effect.fnUntraced(function*() {
      const now = yield* Clock.currentTimeMillis
      return { tokens: store.now().admin.tokens.map((token) => viewToken(token, now)) }
    }),
    add: Effect.fnUntraced(function*({ request }) {
      const body = yield* readToken(request)
      const now = yield* Clock.currentTimeMillis
      const name = body.name.trim()
      if (name === "") return yield* invalidRequest("name must not be empty", "name")
      const expiry = given(body.expires_at)
      const expiresAt = expiry === undefined ? undefined : parseTimestamp(expiry)
      if (expiry !== undefined && (expiresAt === undefined || expiresAt <= now)) {
        return yield* invalidRequest("expires_at must be a later RFC 3339 time with its zone", "expires_at")
      }
      const id = randomBytes(6).toString("hex")
      const { hash, secret } = newSecret()
      const saved = yield* changed(
        "a token for the admin API was added",
        store.update((raw, { admin }) =>
          admin.tokens.some((token) => token.name === name)
            ? Effect.fail(invalidRequest("name is the name of a token already", "name"))
            : Effect.succeed(setField(raw, ["admin", "tokens"], [...entriesOf(raw), {
              id,
              name,
              role: body.role,
              hash,
              ...(expiresAt === undefined ? {} : { expires_at: formatTimestamp(expiresAt) })
            }]))
        )
      )
      const token = saved.config.admin.tokens.find((each) => each.id === id)
      if (token === undefined) return yield* unknownToken
      return { success: true, secret, token: viewToken(token, now), ...lastingOf(saved) }
    }),
    remove: Effect.fnUntraced(function*({ params: { id } }) {
      const saved = yield* changed(
        "a token for the admin API was removed",
        store.update((raw) => {
          const entries = entriesOf(raw)
          const left = entries.filter((entry) => !isJsonObject(entry) || entry["id"] !== id)
          return left.length === entries.length
            ? Effect.fail(unknownToken)
            : Effect.succeed(setField(raw, ["admin", "tokens"], left.length === 0 ? undefined : left))
        })
      )
      return { success: true, id, ...lastingOf(saved) }
    })
  }
})
