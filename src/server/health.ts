/**
 * Health probes (spec "Health"): `/healthz` says that the process answers, `/readyz` that it takes requests.
 */
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import { storeUnavailable } from "../accounts/shared/sharedPool.ts"
import { gatewayError } from "../domain/GatewayError.ts"
import { apiId } from "../http/reply.ts"
import { Nodes } from "../nodes/Nodes.ts"
import { HealthGroup } from "./healthApi.ts"
import { Lifecycle } from "./Lifecycle.ts"

/** What new requests are told while the gateway drains. */
export const shuttingDown = gatewayError("shutting_down", "The gateway is shutting down", { retryAfter: 5 })

export const HealthHandlers = HttpApiBuilder.group(
  HttpApi.make(apiId).add(HealthGroup),
  "health",
  Effect.fnUntraced(function*(handlers) {
    const lifecycle = yield* Lifecycle
    const nodes = yield* Nodes
    nodes.watchDraining(lifecycle.isDraining)
    return handlers
      .handle("healthz", () => Effect.succeed({ status: "ok" as const }))
      .handle(
        "readyz",
        () => {
          if (lifecycle.isDraining()) return Effect.fail(shuttingDown)
          return nodes.isReady() ? Effect.succeed({ status: "ready" as const }) : Effect.fail(storeUnavailable())
        }
      )
  })
)
