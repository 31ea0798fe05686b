/**
 * Lists the input items of a stored response a page at a time, each with an id and with its content as a list.
 */
import { inputItemId, seedOf } from "../../contracts/responses/ids.ts"
import { isOtherItem, type Item } from "../../contracts/responses/items.ts"
import type { InputItemList } from "../../contracts/responses/schema.ts"
import type { MessageContent } from "../../contracts/shared/chatFamily.ts"
import { type Cooperative, mapCooperatively, Slice } from "../../domain/stream/cooperative.ts"
import type { StoredResponse } from "./store/ResponsesStore.ts"
import { inputItems } from "./storedItems.ts"

/** The page to list. */
export interface PageQuery {
  readonly limit?: number
  readonly order?: "asc" | "desc"
  readonly after?: string
}

type Listed = (typeof InputItemList.Type)["data"][number]

const contentList = (content: MessageContent, role: string): MessageContent =>
  typeof content === "string"
    ? [{ type: role === "assistant" ? "output_text" : "input_text", text: content }]
    : content

/** The item as it is listed. The first item with an id keeps it: pages continue after an id. */
const listedItem = (item: Item, seed: string, index: number, taken: Set<string>): Listed => {
  const id = (type: string) => {
    const own = "id" in item && typeof item.id === "string" && !taken.has(item.id) ? item.id : undefined
    if (own !== undefined) taken.add(own)
    return own ?? inputItemId(seed, type, index)
  }
  if (isOtherItem(item)) return { ...item, id: id(item.type) }
  switch (item.type) {
    case "function_call": {
      const args = item.arguments ?? "{}"
      return {
        ...item,
        id: id(item.type),
        status: item.status ?? "completed",
        call_id: item.call_id ?? "",
        arguments: typeof args === "string" ? args : JSON.stringify(args)
      }
    }
    case "custom_tool_call":
    case "function_call_output":
    case "custom_tool_call_output":
      return { ...item, id: id(item.type), status: item.status ?? "completed", call_id: item.call_id ?? "" }
    case "reasoning":
      return { ...item, id: id(item.type), summary: item.summary ?? [] }
    case "message":
    case undefined:
    case null: {
      const content = contentList(item.content, item.role)
      return { ...item, id: id("message"), type: "message", status: item.status ?? "completed", content }
    }
    default:
      // A content part in the place of an item.
      return { id: id("message"), type: "message", role: "user", status: "completed", content: [{ ...item }] }
  }
}

/** One page of the input items, newest first unless `order` is `asc`; `undefined` when no item has the id `after`. */
export function* listInputItems(
  stored: StoredResponse,
  { after, limit = 20, order = "desc" }: PageQuery
): Cooperative<typeof InputItemList.Type | undefined> {
  const seed = seedOf(stored.id)
  const items = yield* inputItems(stored)
  const taken = new Set<string>()
  const all = yield* mapCooperatively(new Slice(), items, (item, index) => listedItem(item, seed, index, taken))
  if (order === "desc") all.reverse()
  const last = after === undefined || after === "" ? undefined : all.findIndex((item) => item["id"] === after)
  if (last === -1) return undefined
  const start = last === undefined ? 0 : last + 1
  const data = all.slice(start, start + limit)
  const idAt = (index: number): string | null => {
    const id = data[index]?.["id"]
    return typeof id === "string" ? id : null
  }
  return {
    object: "list",
    data,
    first_id: idAt(0),
    last_id: idAt(data.length - 1),
    has_more: start + limit < all.length
  }
}
