/**
 * The list of models of the messages contract.
 */
import { type AllowedRoutes, isAllowed } from "../../domain/allowedRoutes.ts"
import type { Catalogue } from "../../domain/catalogue.ts"
import type { ModelFacts } from "../../domain/modelFacts.ts"
import { modelsCreated, nativeModels, normalizeModelName } from "../../domain/models.ts"
import { listedRoutes, reachesModel, serverModels } from "../../domain/routeLists.ts"
import { resolveRoute, type RouteTable } from "../../domain/routes.ts"
import { createdAt, factsInForm } from "./anthropicModels.ts"
import type { MessagesModel, MessagesModelList } from "./schema.ts"

const ids = [
  "msgcompat-opus-4-6",
  "msgcompat-sonnet-4-5",
  "msgcompat-haiku-4-5",
  "msgcompat-opus-4-5-20251101",
  "msgcompat-opus-4-1",
  "msgcompat-opus-4-1-20250805",
  "msgcompat-opus-4-0",
  "msgcompat-opus-4-20250514",
  "msgcompat-sonnet-4-5-20250929",
  "msgcompat-sonnet-4-0",
  "msgcompat-sonnet-4-20250514",
  "msgcompat-haiku-4-5-20251001",
  "msgcompat-3-7-sonnet-latest",
  "msgcompat-3-7-sonnet-20250219",
  "msgcompat-3-5-sonnet-latest",
  "msgcompat-3-5-sonnet-20241022",
  "msgcompat-3-5-sonnet-20240620",
  "msgcompat-3-opus-20240229",
  "msgcompat-3-sonnet-20240229",
  "msgcompat-3-5-haiku-latest",
  "msgcompat-3-5-haiku-20241022",
  "msgcompat-3-haiku-20240307"
] as const

const lines = ["opus", "sonnet", "haiku"] as const

/** `msgcompat-3-5-haiku-latest` becomes "Msgcompat 3.5 Haiku Latest"; a date stays unchanged. */
const displayName = (id: string): string =>
  id.replace(/(?<=-\d)-(?=\d(?:-|$))/g, ".").split("-")
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join(" ")

const entry = (id: string, facts: ModelFacts, name = displayName(id)): typeof MessagesModel.Type => ({
  id,
  object: "model",
  type: "model",
  created: modelsCreated,
  created_at: createdAt,
  owned_by: "anthropic",
  display_name: name,
  lifecycle: "active",
  line: lines.find((line) => id.includes(line)) ?? null,
  deprecated_at: null,
  retires_at: null,
  ...factsInForm(facts)
})

const natives: ReadonlySet<string> = new Set(nativeModels.map(({ id }) => id))

/** The route of a name that the caller may use. */
const routeFor = (table: RouteTable, allowed: AllowedRoutes | undefined, name: string) => {
  const route = resolveRoute(table, "mapped", name)
  return route !== undefined && isAllowed(allowed, route) ? route : undefined
}

/**
 * The models that the caller may see: the style's own names that reach a model, with the facts of that model; the server's names; then all
 * others of the list of models but the native ones, which the style's own names stand for.
 */
export const messagesModelList = (
  table: RouteTable,
  catalogue: Catalogue,
  allowed: AllowedRoutes | undefined
): typeof MessagesModelList.Type => {
  const own = ids.flatMap((id) => {
    const route = routeFor(table, allowed, id)
    return route !== undefined && reachesModel(table, route) ? [entry(id, catalogue.factsOf(route))] : []
  })
  const ofServer = serverModels(table, allowed)
  const known = new Set(ofServer.map(({ id }) => id))
  const others = listedRoutes(table, allowed).filter(({ id }) => !natives.has(id) && !known.has(id))
  const data = [
    ...own,
    ...[...ofServer, ...others].map((route) => {
      const facts = catalogue.factsOf(route)
      return entry(route.id, facts, facts.display_name)
    })
  ]
  return { object: "list", data, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null, has_more: false }
}

/** The entry of any name that a messages request accepts; `undefined` for other names. */
export const findMessagesModel = (
  table: RouteTable,
  catalogue: Catalogue,
  allowed: AllowedRoutes | undefined,
  requested: string
): typeof MessagesModel.Type | undefined => {
  const route = routeFor(table, allowed, requested)
  return route && entry(normalizeModelName(requested), catalogue.factsOf(route))
}
