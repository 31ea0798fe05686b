/**
 * Serves runtime settings and the admin password.
 */
import * as Effect from "effect/Effect"
import { ConfigOrigin } from "../../config/ConfigOrigin.ts"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { ConfigTransfer } from "../../config/ConfigTransfer.ts"
import { type GatewayError, gatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import { clientAddress } from "../../http/clientAddress.ts"
import { adminBodyOf, jsonObjectBodyOf } from "../adminBody.ts"
import { AdminAuth } from "../auth/AdminAuth.ts"
import { adminCredential } from "../auth/sessionCookie.ts"
import { changed, lastingOf, revisionIn } from "../changes.ts"
import { adminHandlers } from "../handlers.ts"
import { AdminSettingsGroup } from "./Api.ts"
import { entryFields, groupsInEffect, settingsFields } from "./fields.ts"
import { namesIn, patchSettings } from "./patch.ts"

/** Accepts any field: `patchSettings` refuses unknown and read-only ones. */
const readPatch = jsonObjectBodyOf([])
const readPassword = adminBodyOf(AdminSettingsGroup.endpoints.password, { limit: 64 * 1024 })

/** Adds the list of faults that the error of a refused setting has. */
const withFaults = (error: GatewayError): GatewayError =>
  error.code === "invalid_request"
    ? gatewayError(error.code, error.message, {
      param: error.param ?? undefined,
      faults: [{ field: error.param ?? "", message: error.message }]
    })
    : error

export const AdminSettingsHandlers = adminHandlers(AdminSettingsGroup, function*() {
  const store = yield* ConfigStore
  const origin = yield* ConfigOrigin
  const { hashOf } = yield* ConfigTransfer
  const auth = yield* AdminAuth
  return {
    get: Effect.fnUntraced(function*() {
      const config = yield* store.current
      const { jwt_expire_hours, jwt_valid_after_unix, password_hash } = config.admin
      return {
        success: true,
        env_backed: origin.source.env_backed,
        needs_host_sync: yield* origin.needsHostSync,
        admin: {
          has_password_hash: password_hash !== undefined,
          jwt_expire_hours,
          jwt_valid_after_unix,
          default_password_warning: auth.usesGeneratedKey()
        },
        ...groupsInEffect(config)
      }
    }),
    fields: Effect.fnUntraced(function*() {
      const raw = yield* store.currentRaw
      const config = yield* store.current
      return {
        revision: yield* hashOf(raw),
        fields: settingsFields(raw, config),
        entries: entryFields(),
        warnings: [...config.warnings, ...origin.advice]
      }
    }),
    set: Effect.fnUntraced(function*({ headers, request }) {
      const patch = yield* Effect.mapError(readPatch(request), withFaults)
      const saved = yield* changed(
        `the settings were changed (${namesIn(patch).join(", ")})`,
        store.update((raw) => Effect.fromResult(patchSettings(raw, patch)), {
          expected: revisionIn(headers["if-match"])
        })
      )
      return {
        success: true,
        message: "The settings are in effect",
        env_backed: origin.source.env_backed,
        ...lastingOf(saved)
      }
    }),
    password: Effect.fnUntraced(function*({ request }) {
      const body = yield* readPassword(request)
      const password = body.new_password ?? body.password
      if (password === undefined || password === null) {
        return yield* invalidRequest("new_password is required", "new_password")
      }
      const present = body.current_password ?? undefined
      // A browser adds its cookie to every request of a page, including forged ones.
      if (present === undefined && adminCredential(request)?._tag === "Cookie") {
        return yield* invalidRequest("current_password is required with the session cookie", "current_password")
      }
      if (present !== undefined && !(yield* auth.isPresent(present, clientAddress(request, store.now().server)))) {
        return yield* invalidRequest("current_password is not the password in force", "current_password")
      }
      const saved = yield* changed("the password was changed", auth.setPassword(password))
      return {
        success: true,
        message: "The password is changed; every login has ended",
        force_relogin: true,
        jwt_valid_after_unix: saved.validAfter,
        ...lastingOf(saved)
      }
    })
  }
})
