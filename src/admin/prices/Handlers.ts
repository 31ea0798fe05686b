/**
 * Serves the prices.
 */
import * as Effect from "effect/Effect"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { ConfigTransfer } from "../../config/ConfigTransfer.ts"
import { Prices } from "../../config/entries/Prices.ts"
import type { GatewayConfig } from "../../config/GatewayConfig.ts"
import { isJsonObject, type RawConfig } from "../../config/json.ts"
import { normalizeModelName } from "../../domain/models.ts"
import { findPrice } from "../../domain/prices.ts"
import { reachesModel, serverModels, type Target, targetName } from "../../domain/routes.ts"
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
  isJsonObject(raw["prices"]) ? raw["prices"] as PricesReply["prices"] : {}

const tokenPrices = ["input", "output"] as const

/** Each target under its own name and under those of the routes to it. Costs one pass over targets and prices. */
const viewTargets = (raw: RawConfig, { prices, route_table }: GatewayConfig): PricesReply["targets"] => {
  const entries = new Map(
    Object.entries(writtenPrices(raw)).map(([name, entry]) => [normalizeModelName(name), { name, entry }])
  )
  const view = (target: Target, name: string) => {
    const { model: { id: model }, upstream } = target
    const found = findPrice(prices, upstream, model, name)?.[0]
    const entry = found === undefined ? undefined : entries.get(found)
    const id = normalizeModelName(model)
    return {
      target: targetName(target),
      upstream,
      model,
      server_model: prices.served?.get(`${upstream}/${id}`) ?? model,
      name,
      price: entry?.name ?? null,
      missing: tokenPrices.filter((unit) => entry?.entry[unit] === undefined)
    }
  }
  const listed = Array.from(route_table.upstreams.values()).flatMap((targets) =>
    Array.from(targets.values()).flatMap((target) =>
      reachesModel(route_table, { targets: [target] }) ? [view(target, target.model.id)] : []
    )
  )
  const ofServer = serverModels(route_table).map((model) =>
    view({ upstream: route_table.config.unnamed, model, enabled: true }, model.id)
  )
  const routed = Array.from(route_table.routes.values()).flatMap(({ id, kind, targets }) =>
    kind !== "configured"
      ? []
      : targets.flatMap((target) =>
        normalizeModelName(target.model.id) === normalizeModelName(id) ? [] : [view(target, id)]
      )
  )
  return [...listed, ...ofServer, ...routed]
}

export const AdminPricesHandlers = adminHandlers(AdminPricesGroup, function*() {
  const store = yield* ConfigStore
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
        targets: viewTargets(raw, config),
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
        targets: viewTargets(raw, saved.config),
        ...lastingOf(saved)
      })
    })
  }
})
