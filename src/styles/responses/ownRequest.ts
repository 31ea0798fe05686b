/**
 * The request as its caller wrote it, for servers of the same contract: its fields and items, in their order, with those that the gateway
 * does not know.
 *
 * What only the gateway understands is brought to the contract's form: `messages`, a single item or texts in `input`, tools in the form of
 * chat completions, `stop`, and what `previous_response_id` and references stand for, which are items.
 */
import type { PlacedItem } from "../../contracts/responses/turns.ts"
import { isRecord, type Json, type JsonFields, type JsonRecord } from "../../domain/json.ts"
import { collectSeals } from "../../domain/makers.ts"
import { isFields } from "../../domain/replyExtras.ts"
import type { VendorFields } from "../../domain/VendorFields.ts"
import type { DecodeOptions } from "./requestItems.ts"

/** A function, or a choice of one, without the object that chat completions put it in. */
const flat = (tool: Json): Json => {
  if (!isFields(tool)) return tool
  const { function: inner, ...outer } = tool
  return outer["type"] === "function" && isFields(inner) ? { ...outer, ...inner } : tool
}

const isOfContract = (item: Json): boolean =>
  isRecord(item) && item["type"] !== "item_reference" &&
  (typeof item["type"] === "string" || Object.hasOwn(item, "role"))

const refersToItems = ({ input }: JsonRecord): boolean =>
  Array.isArray(input) && input.some((item) => isRecord(item) && item["type"] === "item_reference")

/** The caller's own `input`, unless the gateway has to write it. */
const ownInput = ({ input, messages, previous_response_id: previous }: JsonRecord): Json | undefined => {
  if ((previous ?? null) !== null || (messages ?? null) !== null || (input ?? null) === null) return undefined
  const sent = input as Json
  return typeof sent === "string" || (Array.isArray(sent) && sent.every(isOfContract)) ? sent : undefined
}

/** The field that names the response which a request continues. */
const previousField = "previous_response_id"

/** Fields that the gateway applies itself. */
const applied: ReadonlySet<string> = new Set(["messages", "stop"])

/** How the request differs from its body. */
interface OwnOptions extends Pick<DecodeOptions, "betas" | "stored"> {
  /** See `VendorFields`. */
  readonly readsCalls: boolean
  /** The gateway has put messages in the places of items. */
  readonly isRewritten: boolean
  /** The server is asked for the compactions of the request; otherwise the gateway makes them. */
  readonly serverCompacts: boolean
}

/** The fields of the request, from its body as it was parsed and from the items of its conversation. */
export const ownRequest = (
  sent: JsonRecord,
  items: ReadonlyArray<PlacedItem>,
  { betas, isRewritten, readsCalls, serverCompacts, stored }: OwnOptions
): VendorFields => {
  const fields: { [name: string]: Json } = {}
  const input = isRewritten ? undefined : ownInput(sent)
  const isExpanded = input === undefined && items.length > 0
  for (const [name, value] of Object.entries(sent as JsonFields)) {
    if (applied.has(name) || name === "__proto__" || (name === "context_management" && !serverCompacts)) continue
    if (isExpanded && (name === "input" || name === "previous_response_id")) continue
    fields[name] = name === "tools" && Array.isArray(value)
      ? value.map(flat)
      : name === "tool_choice"
      ? flat(value)
      : value
  }
  if (isExpanded) fields["input"] = items.map(({ item, sent }) => sent ?? item as Json)
  const id = sent["previous_response_id"]
  const continued = typeof id === "string" && id !== ""
    ? {
      id,
      items: items.filter(({ field }) => field === previousField).length,
      ...(isRewritten || refersToItems(sent) ? {} : { heldBy: stored.get(id)?.heldBy })
    }
    : undefined
  const seals: Array<string> = []
  for (const { item, sent } of items) collectSeals(sent ?? item as Json, seals)
  return {
    vendor: "responses",
    fields,
    wholeElement: true,
    ...(readsCalls ? { readsCalls } : {}),
    ...(betas === undefined ? {} : { headers: { "openai-beta": betas } }),
    ...(seals.length === 0 ? {} : { seals }),
    ...(continued === undefined ? {} : { continued })
  }
}

/** The caller's choices of the vendor's unfinished features; those of the connection are the gateway's own. */
export const betasOf = (header: string | undefined): string | undefined => {
  const betas = (header ?? "").split(",").map((beta) => beta.trim())
    .filter((beta) => beta !== "" && !beta.startsWith("responses_websockets"))
  return betas.length === 0 ? undefined : betas.join(", ")
}
