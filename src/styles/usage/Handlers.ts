/**
 * Serves the usage of the caller's key.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import { type QueryTexts, readQuery } from "../../admin/usage/readQuery.ts"
import { namesOf, viewMeasures, viewRow } from "../../admin/usage/rows.ts"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { formatDecimal } from "../../domain/decimal.ts"
import { gatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import { given } from "../../domain/givenText.ts"
import { formatTimestamp } from "../../domain/time.ts"
import { businessMiddleware } from "../../http/endpointMiddleware.ts"
import { groupRoutes, type HandlersOf } from "../../http/groupRoutes.ts"
import { respond } from "../../http/reply.ts"
import { CurrentCaller } from "../../http/RequestContext.ts"
import type { WindowCount } from "../../usage/Admission.ts"
import { KeyLimits } from "../../usage/KeyLimits.ts"
import { limitedWindows } from "../../usage/limitedWindows.ts"
import type { Grouping } from "../../usage/UsageQuery.ts"
import { UsageStore } from "../../usage/UsageStore.ts"
import { UncountedMiddleware } from "../shared/middleware.ts"
import { ownGroupings, UsageGroup } from "./Api.ts"

const { endpoints } = UsageGroup

const notAKey = gatewayError("authentication_failed", "Only a configured API key has usage of its own")

const rowLimits = { most: 1000, fallback: 100 }

const isOwnGrouping = (name: Grouping): name is (typeof ownGroupings)[number] =>
  ownGroupings.some((grouping) => grouping === name)

const usedOf = ({ cost, requests, tokens }: Readonly<WindowCount>) => ({ requests, tokens, cost: formatDecimal(cost) })

export const UsageHandlers = groupRoutes(
  UsageGroup,
  Effect.gen(function*() {
    const config = yield* ConfigStore
    const keyLimits = yield* KeyLimits
    const store = yield* UsageStore

    /** The history of a key that a query asks for; nothing without a query. */
    const historyOf = Effect.fnUntraced(function*(key: string, texts: QueryTexts) {
      if (Object.values(texts).every((text) => given(text) === undefined)) return {}
      const query = yield* Effect.fromResult(readQuery(texts, yield* Clock.currentTimeMillis, rowLimits))
      const by = query.by.filter(isOwnGrouping)
      if (by.length < query.by.length) {
        return yield* Effect.fail(invalidRequest(`by must be of ${ownGroupings.join(", ")}`, "by"))
      }
      const { rows, totals, truncated } = yield* store.query({ ...query, only: { ...query.only, key: new Set([key]) } })
      const names = yield* namesOf(config.now())
      return {
        history: {
          from: formatTimestamp(query.from),
          to: formatTimestamp(query.to),
          by,
          rows: rows.map((row) => viewRow(by, row, names)),
          totals: viewMeasures(totals),
          truncated
        }
      }
    })

    return {
      own: Effect.fnUntraced(function*({ query }) {
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
          })),
          ...(yield* historyOf(key, query))
        })
        return HttpServerResponse.setHeader(response, "cache-control", "no-store")
      })
    } satisfies HandlersOf<typeof UsageGroup>
  })
).pipe(Layer.provide(Layer.effect(UncountedMiddleware, businessMiddleware(UncountedMiddleware.facts))))
