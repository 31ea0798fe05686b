/**
 * The named tokens for the admin API, of which the configuration has the hashes.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Schema from "effect/Schema"
import { randomBytes } from "node:crypto"
import { type GatewayError, gatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import { formatTimestamp, parseTimestamp } from "../../domain/time.ts"
import { ConfigStore, type Saved, type UpdateError, type UpdateOptions } from "../ConfigStore.ts"
import type { AdminToken } from "../GatewayConfig.ts"
import { isJsonObject, type RawConfig, sha256Hex } from "../json.ts"
import { setField } from "../rawConfig.ts"
import type { Role } from "../schema.ts"
import { generateKey } from "../secrets.ts"

/** The token to add. */
export interface NewToken {
  /** Unique among the tokens. */
  readonly name: string
  readonly role: Role
  /** A later RFC 3339 time with its zone; without one the token does not expire. */
  readonly expires_at?: string | undefined
}

/** The tokens after one was added. */
export interface TokenAdded extends Saved {
  /** What signs in; the configuration has its hash alone. */
  readonly secret: string
  /** `undefined` if an edit at the same time has removed it. */
  readonly token: AdminToken | undefined
}

/** The error for a token that is not configured. */
export const unknownToken = gatewayError("not_found", "No such token is configured")

const entriesOf = ({ admin }: RawConfig): ReadonlyArray<Schema.Json> => {
  const tokens = isJsonObject(admin) ? admin["tokens"] : undefined
  return Array.isArray(tokens) ? tokens : []
}

/**
 * The tokens for the admin API. A change fails with `invalid_request` for a wrong value, with `not_found` for an unknown token, and
 * otherwise as `ConfigStore.update` does.
 */
export class Tokens extends Context.Service<Tokens, {
  readonly list: Effect.Effect<ReadonlyArray<AdminToken>>
  readonly add: (token: NewToken, options?: UpdateOptions) => Effect.Effect<TokenAdded, UpdateError | GatewayError>
  /** Removes a token by its id. Its logins end immediately. */
  readonly remove: (id: string, options?: UpdateOptions) => Effect.Effect<Saved, UpdateError | GatewayError>
}>()("model-gateway/config/Tokens") {
  static readonly layer: Layer.Layer<Tokens, never, ConfigStore> = Layer.effect(
    Tokens,
    Effect.map(ConfigStore, (store) => ({
      list: Effect.map(store.current, ({ admin }) => admin.tokens),
      add: Effect.fnUntraced(function*({ expires_at, name: given, role }, options) {
        const name = given.trim()
        if (name === "") return yield* invalidRequest("name must not be empty", "name")
        const expiresAt = expires_at === undefined ? undefined : parseTimestamp(expires_at)
        if (expires_at !== undefined && (expiresAt === undefined || expiresAt <= (yield* Clock.currentTimeMillis))) {
          return yield* invalidRequest("expires_at must be a later RFC 3339 time with its zone", "expires_at")
        }
        const id = randomBytes(6).toString("hex")
        const secret = generateKey("mga")
        const entry = {
          id,
          name,
          role,
          hash: sha256Hex(secret),
          ...(expiresAt === undefined ? {} : { expires_at: formatTimestamp(expiresAt) })
        }
        const saved = yield* store.update((raw, { admin }) =>
          admin.tokens.some((token) => token.name === name)
            ? Effect.fail(invalidRequest(`An admin token named "${name}" already exists`, "name"))
            : Effect.succeed(setField(raw, ["admin", "tokens"], [...entriesOf(raw), entry])), options)
        return { ...saved, secret, token: saved.config.admin.tokens.find((token) => token.id === id) }
      }),
      remove: (id, options) =>
        store.update((raw) => {
          const entries = entriesOf(raw)
          const left = entries.filter((entry) => !isJsonObject(entry) || entry["id"] !== id)
          return left.length === entries.length
            ? Effect.fail(unknownToken)
            : Effect.succeed(setField(raw, ["admin", "tokens"], left.length === 0 ? undefined : left))
        }, options)
    }))
  )
}
