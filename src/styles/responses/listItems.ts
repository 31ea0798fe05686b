/**
 * The items that a stored response was made from, as the vendor's list endpoint shows them: each with an id and with its
 * content as a list, a page at a time.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { mapSliced, Slice, type Sliced } from "../../domain/stream/slices.ts"
import { decodePieces, each } from "../../http/decodePieces.ts"
import type { InputItemList } from "./Api.ts"
import { inputItemId, seedOf } from "./ids.ts"
import type { InputContent } from "./items.ts"
import { isOtherItem, Item } from "./items.ts"
import { itemPieces } from "./outline.ts"
import type { StoredResponse } from "./store/ResponsesStore.ts"

/** Which page is asked for. */
export interface PageQuery {
  readonly limit?: number
  readonly order?: "asc" | "desc"
  readonly after?: string
}

type Listed = (typeof InputItemList.Type)["data"][number]

const decodeItems = decodePieces(Schema.Struct({ items: Schema.Array(Item) }), { items: each(Item, itemPieces) })

const contentList = (content: InputContent, assistant: boolean): InputContent =>
  typeof content !== "string"
    ? content
    : assistant
    ? [{ type: "output_text", text: content }]
    : [{ type: "input_text", text: content }]

/** The item as it is shown. Pages go on from an id: where several items have the same, it stays the first one's. */
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
      const content = contentList(item.content, item.role === "assistant")
      return { ...item, id: id("message"), type: "message", status: item.status ?? "completed", content }
    }
    default:
      // A content part where an item is expected.
      return { id: id("message"), type: "message", role: "user", status: "completed", content: [{ ...item }] }
  }
}

/**
 * One page of the items that a response was made from, newest first unless `order` says otherwise; `undefined` where `after`
 * is none of them.
 */
export function* listInputItems(
  stored: StoredResponse,
  { after, limit = 20, order = "desc" }: PageQuery
): Sliced<typeof InputItemList.Type | undefined> {
  const seed = seedOf(stored.id)
  // What is stored was written by this style: it always decodes.
  const items = Result.getOrThrow(yield* decodeItems({ items: stored.items })).items
  const taken = new Set<string>()
  const all = yield* mapSliced(new Slice(), items, (item, index) => listedItem(item, seed, index, taken))
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
