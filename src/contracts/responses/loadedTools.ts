/**
 * The tools that items of a conversation declare: what a search for tools found, and `additional_tools`.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Cooperative, Slice } from "../../domain/stream/cooperative.ts"
import type { Faults } from "../shared/Faults.ts"
import { isOtherItem } from "./items.ts"
import { ResponseTool } from "./schema.ts"
import type { Tool, ToolList } from "./tools.ts"
import type { PlacedItem } from "./turns.ts"

const decodeTool = Schema.decodeUnknownResult(ResponseTool)

const declaring: ReadonlySet<string> = new Set(["tool_search_output", "additional_tools"])

/** The lists of tools in the items, with their fields. */
export function* loadedTools(
  items: ReadonlyArray<PlacedItem>,
  faults: Faults,
  slice: Slice
): Cooperative<ReadonlyArray<ToolList>> {
  const lists: Array<ToolList> = []
  for (const { field, item } of items) {
    if (slice.add(1)) yield slice.end()
    if (!isOtherItem(item) || !declaring.has(item.type)) continue
    const sent = item["tools"]
    const list: ReadonlyArray<unknown> = Array.isArray(sent) ? sent : []
    if (!Array.isArray(sent)) faults.at(`${field}.tools`, "must be a list")
    const tools: Array<Tool> = []
    for (const [i, tool] of list.entries()) {
      if (slice.add(10)) yield slice.end()
      const decoded = decodeTool(tool)
      if (Result.isSuccess(decoded)) tools.push(decoded.success)
      else faults.at(`${field}.tools[${i}]`, "is not a tool")
    }
    lists.push({ tools, field: `${field}.tools` })
  }
  return lists
}
