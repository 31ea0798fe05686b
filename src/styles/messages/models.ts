/**
 * The model list of the messages style (behaviour §5).
 */
import { modelsCreated, normalizeModelName } from "../../domain/models.ts"
import {
  type AllowedRoutes,
  isAllowed,
  reachesModel,
  resolveRoute,
  type RouteTable,
  serverModels
} from "../../domain/routes.ts"
import type { MessagesModel, MessagesModelList } from "./Api.ts"

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

const createdAt = new Date(modelsCreated * 1000).toISOString().replace(".000Z", "Z")

const lines = ["opus", "sonnet", "haiku"] as const

/** `msgcompat-3-5-haiku-latest` becomes "Msgcompat 3.5 Haiku Latest"; a date stays unchanged. */
const displayName = (id: string): string =>
  id.replace(/(?<=-\d)-(?=\d(?:-|$))/g, ".").split("-")
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join(" ")

const entry = (id: string): typeof MessagesModel.Type => ({
  id,
  object: "model",
  type: "model",
  created: modelsCreated,
  created_at: createdAt,
  owned_by: "anthropic",
  display_name: displayName(id),
  lifecycle: "active",
  line: lines.find((line) => id.includes(line)) ?? null,
  capabilities: null,
  deprecated_at: null,
  retires_at: null,
  max_input_tokens: null,
  max_tokens: null
})

const entries: ReadonlyArray<typeof MessagesModel.Type> = ids.map(entry)

/** The route of a name that the caller may use. */
const routeFor = (table: RouteTable, allowed: AllowedRoutes | undefined, name: string) => {
  const route = resolveRoute(table, "messages", name)
  return route !== undefined && isAllowed(allowed, route) ? route : undefined
}

/** The models that the caller may see: the style's own names that reach a model, then the server's names. */
export const messagesModelList = (
  table: RouteTable,
  allowed: AllowedRoutes | undefined
): typeof MessagesModelList.Type => {
  const own = entries.filter(({ id }) => {
    const route = routeFor(table, allowed, id)
    return route !== undefined && reachesModel(table, route)
  })
  const data = [...own, ...serverModels(table, allowed).map(({ id }) => entry(id))]
  return { object: "list", data, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null, has_more: false }
}

/** The entry of any name that a messages request accepts; `undefined` for other names. */
export const findMessagesModel = (
  table: RouteTable,
  allowed: AllowedRoutes | undefined,
  requested: string
): typeof MessagesModel.Type | undefined => routeFor(table, allowed, requested) && entry(normalizeModelName(requested))
