/**
 * Serves the prices.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { ConfigTransfer } from "../../config/ConfigTransfer.ts"
import { Prices } from "../../config/entries/Prices.ts"
import type { GatewayConfig } from "../../config/GatewayConfig.ts"
import { isJsonObject, type RawConfig } from "../../config/json.ts"
import { pricedTargets } from "../../config/pricedTargets.ts"
import type { ReplyBody } from "../../http/reply.ts"
import { jsonObjectBodyOf } from "../adminBody.ts"
import { changed, lastingOf, revisionIn } from "../changes.ts"
import { adminHandlers, respondInSlices } from "../handlers.ts"
import { AdminPricesGroup, PricesRequest } from "./Api.ts"

const { endpoints } = AdminPricesGroup
const readPrices = jsonObjectBodyOf([PricesRequest])

type PricesReply = ReplyBody<typeof endpoints.get>

/** The prices as the file has them. The configuration in effect has valid ones alone. */
const writtenPrices = (raw: RawConfig): PricesReply["prices"] =>
  Object.fromEntries(
    Object.entries(isJsonObject(raw["prices"]) ? raw["prices"] : {}).filter(([, entry]) =>
      isJsonObject(entry) || Array.isArray(entry)
    )
  ) as PricesReply["prices"]

export const AdminPricesHandlers = adminHandlers(AdminPricesGroup, function*() {
  const store = yield* ConfigStore
  const clock = yield* Clock.Clock
  const targetsOf = (raw: RawConfig, config: GatewayConfig) =>
    pricedTargets(raw, config, clock.currentTimeMillisUnsafe())
  const entries = yield* Prices
  const { configHash } = yield* ConfigTransfer
  return {
    get: Effect.fnUntraced(function*() {
      const revision = yield* configHash
      const raw = yield* store.currentRaw
      const config = store.now()
      return yield* respondInSlices(endpoints.get, {
        prices: writtenPrices(raw),
        currency: config.currency ?? null,
        targets: targetsOf(raw, config),
        revision
      })
    }),
    set: Effect.fnUntraced(function*({ headers, request }) {
      const { prices } = yield* readPrices(request)
      const setting = entries.set(prices, { expected: revisionIn(headers["if-match"]) })
      const saved = yield* changed("the prices were changed", setting)
      const raw = yield* store.currentRaw
      return yield* respondInSlices(endpoints.set, {
        success: true,
        prices: writtenPrices(raw),
        targets: targetsOf(raw, saved.config),
        ...lastingOf(saved)
      })
    })
  }
})
