/**
 * Serves the usage of the key that asks.
 */
import * as Effect from "effect/Effect"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { formatDecimal } from "../../domain/decimal.ts"
import { gatewayError } from "../../domain/GatewayError.ts"
import { formatTimestamp } from "../../domain/time.ts"
import { businessMiddleware } from "../../http/endpointMiddleware.ts"
import { groupRoutes, type HandlersOf } from "../../http/groupRoutes.ts"
import { respond } from "../../http/reply.ts"
import { CurrentCaller } from "../../http/RequestContext.ts"
import type { WindowCount } from "../../usage/Admission.ts"
import { KeyLimits } from "../../usage/KeyLimits.ts"
import { limitedWindows } from "../../usage/limitedWindows.ts"
import { UncountedMiddleware } from "../shared/middleware.ts"
import { UsageGroup } from "./Api.ts"

const { endpoints } = UsageGroup

const notAKey = gatewayError("authentication_failed", "Only a configured API key has usage of its own")

const usedOf = ({ cost, requests, tokens }: Readonly<WindowCount>) => ({ requests, tokens, cost: formatDecimal(cost) })

export const UsageHandlers = groupRoutes(
  UsageGroup,
  Effect.gen(function*() {
    const config = yield* ConfigStore
    const keyLimits = yield* KeyLimits
    return {
      own: Effect.fnUntraced(function*() {
        const caller = yield* CurrentCaller
        const key = caller._tag === "Managed" ? caller.key : undefined
        if (key === undefined) return yield* notAKey
        const { currency, key_records } = config.now()
        const record = key_records.get(key)
        const [usage] = yield* keyLimits.usageOf([key])
        const windowOf = (name: WindowCount["window"]) => usedOf(usage!.windows.find(({ window }) => window === name)!)
        const response = respond(endpoints.own, {
          key: { name: record?.name ?? null },
          currency: currency ?? null,
          today: windowOf("day"),
          month: windowOf("month"),
          limits: limitedWindows(record, usage!).map(({ resetsAt, startedAt: _, ...limit }) => ({
            ...limit,
            resets_at: formatTimestamp(resetsAt)
          }))
        })
        return HttpServerResponse.setHeader(response, "cache-control", "no-store")
      })
    } satisfies HandlersOf<typeof UsageGroup>
  })
).pipe(Layer.provide(Layer.effect(UncountedMiddleware, businessMiddleware(UncountedMiddleware.facts))))
