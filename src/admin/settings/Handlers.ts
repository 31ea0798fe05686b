/**
 * Runtime settings and the admin password at work.
 */
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { type GatewayError, gatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import { addressOf } from "../../http/addressOf.ts"
import { apiId, respond } from "../../http/reply.ts"
import { adminBodyOf, jsonObjectBodyOf } from "../adminBody.ts"
import { AdminAuth } from "../auth/AdminAuth.ts"
import { adminCredential } from "../auth/sessionCookie.ts"
import { changed, lastingOf } from "../changes.ts"
import { AdminSettingsGroup } from "./Api.ts"
import { settingsFields } from "./fields.ts"
import { namesIn, patchSettings } from "./patch.ts"

/** `patchSettings` refuses what it does not know together with what cannot be changed. */
const readPatch = jsonObjectBodyOf([])
const readPassword = adminBodyOf(AdminSettingsGroup.endpoints.password, { limit: 64 * 1024 })

/** A refused body has its fault where a refused setting has. */
const withFaults = (error: GatewayError): GatewayError =>
  error.code === "invalid_request"
    ? gatewayError(error.code, error.message, {
      param: error.param ?? undefined,
      faults: [{ field: error.param ?? "", message: error.message }]
    })
    : error

/** The revision that a change is meant for, with or without the quotes of an entity tag; `*` fits every one. */
const revisionIn = (ifMatch: string | undefined): string | undefined => {
  const revision = ifMatch?.trim().replace(/^(?:W\/)?"(.*)"$/, "$1")
  return revision === "*" || revision === "" ? undefined : revision
}

export const AdminSettingsHandlers = HttpApiBuilder.group(
  HttpApi.make(apiId).add(AdminSettingsGroup),
  "admin-settings",
  Effect.fnUntraced(function*(handlers) {
    const store = yield* ConfigStore
    const auth = yield* AdminAuth
    return handlers
      .handle(
        "get",
        Effect.fnUntraced(function*() {
          const { admin, auto_delete, compat, embeddings, model_aliases, msgcompat_mapping, responses, runtime } =
            yield* store.current
          return {
            success: true,
            env_backed: store.source.env_backed,
            needs_host_sync: yield* store.needsHostSync,
            admin: {
              has_password_hash: admin.password_hash !== undefined,
              jwt_expire_hours: admin.jwt_expire_hours,
              jwt_valid_after_unix: admin.jwt_valid_after_unix,
              default_password_warning: store.adminKeyGenerated && admin.password_hash === undefined
            },
            // What follows from other settings is no setting: the reply's schema leaves it out.
            runtime: { ...runtime, key_max_inflight: runtime.key_max_inflight ?? null },
            compat,
            responses,
            embeddings,
            auto_delete,
            msgcompat_mapping,
            model_aliases: Object.fromEntries(model_aliases)
          }
        })
      )
      .handle(
        "fields",
        Effect.fnUntraced(function*() {
          const raw = yield* store.currentRaw
          const fields = settingsFields(raw, yield* store.current)
          return { revision: yield* store.hashOf(raw), fields }
        })
      )
      .handleRaw(
        "set",
        Effect.fnUntraced(function*({ endpoint, headers, request }) {
          const patch = yield* Effect.mapError(readPatch(request), withFaults)
          const saved = yield* changed(
            `the settings were changed (${namesIn(patch).join(", ")})`,
            store.update((raw) => Effect.fromResult(patchSettings(raw, patch)), {
              expected: revisionIn(headers["if-match"])
            })
          )
          return respond(endpoint, {
            success: true,
            message: "The settings are in effect",
            env_backed: store.source.env_backed,
            ...lastingOf(saved)
          })
        })
      )
      .handleRaw(
        "password",
        Effect.fnUntraced(function*({ endpoint, request }) {
          const body = yield* readPassword(request)
          const password = body.new_password ?? body.password
          if (password === undefined || password === null) {
            return yield* invalidRequest("new_password is required", "new_password")
          }
          const present = body.current_password ?? undefined
          // A browser sends its cookie with every request of a page, also of one that the operator did not mean.
          if (present === undefined && adminCredential(request)?._tag === "Cookie") {
            return yield* invalidRequest("current_password is required with the session cookie", "current_password")
          }
          if (present !== undefined && !(yield* auth.isPresent(present, addressOf(request)))) {
            return yield* invalidRequest("current_password is not the password in force", "current_password")
          }
          const saved = yield* changed("the password was changed", auth.setPassword(password))
          return respond(endpoint, {
            success: true,
            message: "The password is changed; every login has ended",
            force_relogin: true,
            jwt_valid_after_unix: saved.validAfter,
            ...lastingOf(saved)
          })
        })
      )
  })
)
