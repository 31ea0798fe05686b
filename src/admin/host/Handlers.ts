/**
 * Serves the sync to the hosting platform.
 */
import * as Effect from "effect/Effect"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import { isJsonObject } from "../../config/json.ts"
import { invalidRequest } from "../../domain/GatewayError.ts"
import { mayBeEmpty } from "../../http/documented.ts"
import { CurrentRequest } from "../../http/RequestContext.ts"
import { adminBodyOf, jsonObjectBodyOf } from "../adminBody.ts"
import { logChange } from "../changes.ts"
import { adminHandlers } from "../handlers.ts"
import { AdminHostGroup, HostStatusRequest, type HostSyncFailed } from "./Api.ts"
import { HostSync, type HostSyncFailure } from "./HostSync.ts"

const readSync = adminBodyOf(AdminHostGroup.endpoints.sync)
/** A draft may list a hundred thousand accounts, so it is hashed and not validated. */
const readStatus = jsonObjectBodyOf([HostStatusRequest], { mayBeEmpty: mayBeEmpty(AdminHostGroup.endpoints.compare) })

/** The response has the platform's status, which a declared error cannot have. */
const failed = ({ completed, message, status, step }: HostSyncFailure) => {
  const body: typeof HostSyncFailed.Type = { detail: message, failed_step: step, completed_steps: completed }
  return HttpServerResponse.jsonUnsafe(body, { status })
}

export const AdminHostHandlers = adminHandlers(AdminHostGroup, function*() {
  const hosting = yield* HostSync
  return {
    config: () => hosting.known,
    sync: Effect.fnUntraced(function*({ request }) {
      const { id } = yield* CurrentRequest
      return yield* hosting.sync(yield* readSync(request), id).pipe(
        Effect.tap(() => logChange("the configuration was synced to the hosting platform")),
        Effect.catchTag(
          "HostSyncFailure",
          (failure) => Effect.as(Effect.logWarning(`Host sync: ${failure.message}`), failed(failure))
        )
      )
    }),
    status: () => hosting.status(undefined),
    compare: Effect.fnUntraced(function*({ request }) {
      const draft = (yield* readStatus(request))["config_override"] ?? undefined
      if (draft !== undefined && !isJsonObject(draft)) {
        return yield* invalidRequest("config_override must be a JSON object", "config_override")
      }
      return yield* hosting.status(draft)
    })
  }
})
