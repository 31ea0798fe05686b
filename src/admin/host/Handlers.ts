/**
 * The sync to the hosting platform at the admin API.
 */
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import { isJsonObject } from "../../config/json.ts"
import { invalidRequest } from "../../domain/GatewayError.ts"
import { apiId, respond } from "../../http/reply.ts"
import { CurrentRequest } from "../../http/Request.ts"
import { adminBodyOf, jsonObjectBodyOf } from "../adminBody.ts"
import { logChange } from "../changes.ts"
import type { HostSyncFailed } from "./Api.ts"
import { AdminHostGroup, HostStatusRequest } from "./Api.ts"
import { HostSync, type HostSyncFailure } from "./HostSync.ts"

const readSync = adminBodyOf(AdminHostGroup.endpoints.sync, { mayBeEmpty: true })
/** A draft may list a hundred thousand accounts: it is hashed, and not looked into. */
const readStatus = jsonObjectBodyOf([HostStatusRequest], { mayBeEmpty: true })

/** The platform's status is the reply's, which no declared error could be. */
const failed = ({ completed, message, status, step }: HostSyncFailure) => {
  const body: typeof HostSyncFailed.Type = { detail: message, failed_step: step, completed_steps: completed }
  return HttpServerResponse.jsonUnsafe(body, { status })
}

export const AdminHostHandlers = HttpApiBuilder.group(
  HttpApi.make(apiId).add(AdminHostGroup),
  "admin-host",
  Effect.fnUntraced(function*(handlers) {
    const hosting = yield* HostSync
    return handlers
      .handle("config", () => hosting.known)
      .handleRaw(
        "sync",
        Effect.fnUntraced(function*({ endpoint, request }) {
          const { id } = yield* CurrentRequest
          return yield* hosting.sync(yield* readSync(request), id).pipe(
            Effect.tap(() => logChange("the configuration was synced to the hosting platform")),
            Effect.map((reply) => respond(endpoint, reply)),
            Effect.catchTag(
              "HostSyncFailure",
              (failure) => Effect.as(Effect.logWarning(`Host sync: ${failure.message}`), failed(failure))
            )
          )
        })
      )
      .handle("status", () => hosting.status(undefined))
      .handleRaw(
        "compare",
        Effect.fnUntraced(function*({ endpoint, request }) {
          const draft = (yield* readStatus(request))["config_override"]
          if (draft === undefined || draft === null) return respond(endpoint, yield* hosting.status(undefined))
          if (!isJsonObject(draft)) {
            return yield* invalidRequest("config_override must be a JSON object", "config_override")
          }
          return respond(endpoint, yield* hosting.status(draft))
        })
      )
  })
)
