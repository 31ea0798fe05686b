/**
 * Business keys at work.
 */
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import { ConfigStore, type Saved } from "../../config/ConfigStore.ts"
import { keysOf } from "../../config/edit.ts"
import { gatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import { jsonBody } from "../../http/jsonBody.ts"
import { apiId, jsonReply } from "../../http/reply.ts"
import { changed, lastingOf } from "../changes.ts"
import { AddKeyRequest, AdminKeysGroup } from "./Api.ts"

const readKey = jsonBody(AddKeyRequest)

/** A key must fit into the path by which it is removed; the router takes no longer parameters. */
const mostPathCharacters = 4096

const fitsInPath = (key: string): boolean => key.isWellFormed() && encodeURIComponent(key).length <= mostPathCharacters

const keysReply = (saved: Saved) => ({
  success: true,
  total_keys: saved.config.configured_keys.length,
  ...lastingOf(saved)
})

const unknownKey = gatewayError("not_found", "No such key is configured")

export const AdminKeysHandlers = HttpApiBuilder.group(
  HttpApi.make(apiId).add(AdminKeysGroup),
  "admin-keys",
  Effect.fnUntraced(function*(handlers) {
    const store = yield* ConfigStore
    return handlers
      .handleRaw(
        "add",
        Effect.fnUntraced(function*({ request }) {
          const key = (yield* readKey(request)).key.trim()
          if (key === "") return yield* invalidRequest("key must not be empty", "key")
          if (!fitsInPath(key)) return yield* invalidRequest("key is too long or no Unicode text", "key")
          const saved = yield* changed(
            "a business key was added",
            store.update((raw, config) =>
              config.configured_keys.includes(key)
                ? Effect.fail(invalidRequest("key is configured already", "key"))
                : Effect.succeed({ ...raw, keys: [...keysOf(raw), key] })
            )
          )
          return jsonReply(keysReply(saved))
        })
      )
      .handle(
        "remove",
        Effect.fnUntraced(function*({ params }) {
          const key = params.key.trim()
          const saved = yield* changed(
            "a business key was removed",
            store.update((raw, config) =>
              config.configured_keys.includes(key)
                ? Effect.succeed({
                  ...raw,
                  keys: keysOf(raw).filter((entry) => typeof entry !== "string" || entry.trim() !== key)
                })
                : Effect.fail(unknownKey)
            )
          )
          return keysReply(saved)
        })
      )
  })
)
