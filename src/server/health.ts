/**
 * The health probes (spec "Health"): `/healthz` for liveness, `/readyz` for readiness.
 */
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as Layer from "effect/Layer"
import { Accounts } from "../accounts/Accounts.ts"
import { shuttingDown, storeUnavailable } from "../accounts/refusals.ts"
import { Nodes } from "../admin/nodes/Nodes.ts"
import { gatewayError } from "../domain/GatewayError.ts"
import { publicMiddleware } from "../http/endpointMiddleware.ts"
import { apiId } from "../http/reply.ts"
import { OpenAiPublicMiddleware } from "../styles/shared/middleware.ts"
import { ServerFindings } from "../upstream/ServerFindings.ts"
import { Lifecycle } from "./Lifecycle.ts"
import { HealthGroup } from "./OperatorApi.ts"

/** The store answers, but its configuration is invalid for this node. */
const notTaken = gatewayError(
  "store_unavailable",
  "The shared configuration is invalid for this node. The node's log names the field.",
  { retryAfter: 1 }
)

/** The most sentences about what is wrong. */
const mostDetails = 8

export const HealthHandlers = HttpApiBuilder.group(
  HttpApi.make(apiId).add(HealthGroup),
  "health",
  Effect.fnUntraced(function*(handlers) {
    const lifecycle = yield* Lifecycle
    const nodes = yield* Nodes
    const accounts = yield* Accounts
    const servers = yield* ServerFindings
    nodes.watchDraining(lifecycle.isLeaving)
    return handlers
      .handle("healthz", () => Effect.succeed({ status: "ok" as const }))
      .handle(
        "readyz",
        () => {
          if (lifecycle.isStopping()) return Effect.fail(shuttingDown)
          if (!nodes.isReady()) return Effect.fail(nodes.store()?.state === "up" ? notTaken : storeUnavailable())
          const details = [nodes.store()?.detail ?? [], servers.now().map(({ message }) => message)].flat()
          return Effect.map(accounts.metrics, ({ accounts: { cooling, out, ready } }) => ({
            status: "ready" as const,
            accounts: { ready, total: ready + cooling + out },
            ...(details.length === 0 ? {} : { detail: details.slice(0, mostDetails).join("; ") })
          }))
        }
      )
  })
).pipe(Layer.provide(Layer.succeed(OpenAiPublicMiddleware, publicMiddleware(OpenAiPublicMiddleware.facts))))
