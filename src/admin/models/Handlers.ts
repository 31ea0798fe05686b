/**
 * Serves the catalogue of models.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { ConfigStore } from "../../config/ConfigStore.ts"
import type { GatewayConfig } from "../../config/GatewayConfig.ts"
import { forEachCooperatively, type RawConfig } from "../../config/json.ts"
import { priceViewer } from "../../config/pricedTargets.ts"
import { type AllowedRoutes, allowedRoutes, isAllowed } from "../../domain/allowedRoutes.ts"
import { unpricedTarget } from "../../domain/bill.ts"
import { catalogueOf } from "../../domain/catalogue.ts"
import { formatDecimal } from "../../domain/decimal.ts"
import { cataloguedRoutes, otherNames } from "../../domain/routeLists.ts"
import { type Route, targetName } from "../../domain/routes.ts"
import { keyStatusOf, limitsCost } from "../../usage/keyRules.ts"
import { percentilesOf } from "../../usage/Times.ts"
import { costsOf, measuresOf } from "../../usage/UsageEntry.ts"
import { UsageStore } from "../../usage/UsageStore.ts"
import { dayLength, hourLength, hourOf } from "../../usage/windows.ts"
import { pageOf, searchText, sortedBy, type SortValue } from "../contract.ts"
import { adminHandlers, respondInSlices } from "../handlers.ts"
import { AdminModelsGroup, type CataloguedModel, type modelSorts } from "./Api.ts"

const { endpoints } = AdminModelsGroup

const pageSizes = { fallback: 100, most: 1000 }
/** The most models whose usage is read. */
const mostRows = 10_000
/** The cost of showing a model, in characters of `forEachCooperatively`. */
const itemWeight = 4096

type Model = typeof CataloguedModel.Type
/** A model with all that is known of it but the facts. */
type Viewed = Omit<Model, "facts"> & { readonly route: Route }
type Listed = Pick<Model, "id" | "kind" | "stands_for"> & { readonly route: Route }

/** All names that callers may use. */
const listedNames = ({ route_table }: GatewayConfig): ReadonlyArray<Listed> => [
  ...cataloguedRoutes(route_table).map((route): Listed => ({
    id: route.id,
    kind: route.kind === "configured" ? "route" : "model",
    stands_for: null,
    route
  })),
  ...otherNames(route_table).map(({ kind, name, route }): Listed => ({ id: name, kind, stands_for: route.id, route }))
]

/** What the keys with a cost limit may ask for; `undefined` among them for a key that may ask for everything. */
const budgetedModels = Effect.fnUntraced(function*({ key_records, route_table }: GatewayConfig, now: number) {
  const found = new Map<string, AllowedRoutes | undefined>()
  yield* forEachCooperatively([...key_records.values()], (record) => {
    if (!limitsCost(record.limits) || keyStatusOf(record, now) !== "active") return
    const name = JSON.stringify(record.models ?? null)
    if (!found.has(name)) found.set(name, record.models && allowedRoutes(route_table, record.models))
    return itemWeight
  })
  return [...found.values()]
})

const sortValues: { readonly [Name in (typeof modelSorts)[number]]: (model: Viewed) => SortValue } = {
  id: ({ id }) => id,
  kind: ({ kind }) => kind,
  input: ({ prices }) => numberOf(prices[0]?.input),
  output: ({ prices }) => numberOf(prices[0]?.output),
  requests: ({ day }) => day?.requests,
  cost: ({ day }) => numberOf(day?.cost),
  first_event_p95_ms: ({ day }) => day?.first_event_p95_ms
}

const numberOf = (text: string | null | undefined): number | undefined =>
  text === null || text === undefined ? undefined : Number(text)

export const AdminModelsHandlers = adminHandlers(AdminModelsGroup, function*() {
  const store = yield* ConfigStore
  const usage = yield* UsageStore

  /** What each model has done in the last 24 hours, by its id. */
  const days = Effect.fnUntraced(function*(now: number) {
    const to = hourOf(now + hourLength - 1)
    const { rows } = yield* usage.query({ from: to - dayLength, to, by: ["model"], only: {}, limit: mostRows })
    return new Map(rows.map(({ model, sums }) => [model, {
      requests: measuresOf(sums).requests,
      cost: costsOf(sums).cost,
      first_event_p95_ms: percentilesOf(sums.times).first_event_p95_ms
    }]))
  })

  /** The models of a list, with all that is known of them but the facts. */
  const viewed = Effect.fnUntraced(function*(raw: RawConfig, config: GatewayConfig, listed: ReadonlyArray<Listed>) {
    const now = yield* Clock.currentTimeMillis
    const used = yield* days(now)
    const budgeted = yield* budgetedModels(config, now)
    const priced = priceViewer(raw, config, now)
    const models: Array<Viewed> = []
    yield* forEachCooperatively(listed, ({ route, ...names }) => {
      const { id } = route
      models.push({
        ...names,
        hidden: route.hidden === true,
        targets: route.targets.map(targetName),
        prices: route.targets.map((target) => {
          const { from, listed, price: entry, target: name, units } = priced(target, id)
          const amount = (unit: string) => {
            const value = units?.get(unit)
            return value === undefined ? null : formatDecimal(value)
          }
          return {
            target: name,
            entry,
            from,
            listed,
            input: amount("input"),
            cached_input: amount("cached_input"),
            output: amount("output"),
            per_request: amount("per_request")
          }
        }),
        price_needed: unpricedTarget(config.prices, now, route) !== undefined &&
          budgeted.some((allowed) => isAllowed(allowed, route)),
        day: names.stands_for === null ? used.get(id) ?? { requests: 0, cost: "0", first_event_p95_ms: null } : null,
        route
      })
      return itemWeight
    })
    return models
  })

  return {
    list: Effect.fnUntraced(function*({ query }) {
      const raw = yield* store.currentRaw
      const config = store.now()
      const listed = listedNames(config).filter(({ kind }) => !query.kind || kind === query.kind)
      const text = searchText(query)
      const all = yield* viewed(raw, config, listed)
      const found = text === "" ?
        all :
        all.filter(({ id, prices, stands_for, targets }) =>
          [id, stands_for, ...targets, ...prices.map(({ entry }) => entry)].some((each) =>
            each?.toLowerCase().includes(text) === true
          )
        )
      const sorted = query.sort ? sortedBy(found, sortValues[query.sort], query.order) : found
      const { items, ...page } = pageOf(sorted, query, pageSizes)
      const catalogue = catalogueOf(config)
      return yield* respondInSlices(endpoints.list, {
        models: items.map(({ route, ...model }) => ({ ...model, facts: catalogue.ofRoute(route) })),
        ...page,
        currency: config.currency ?? null
      })
    })
  }
})
