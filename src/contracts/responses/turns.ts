/**
 * Decodes the items of a conversation to its turns.
 */
import { type Conversation, type Part, Reasoning, type Role, Text } from "../../domain/Conversation.ts"
import type { Json } from "../../domain/json.ts"
import { type Cooperative, mapCooperatively, type Slice } from "../../domain/stream/cooperative.ts"
import { contentParts, partOf } from "../shared/chatFamily.ts"
import { call, omitted, result } from "../shared/conversation.ts"
import type { Faults } from "../shared/Faults.ts"
import { isOtherItem, type Item } from "./items.ts"
import type { ToolNames } from "./toolNames.ts"
import { customArguments } from "./tools.ts"
import { type Said, vendorItem } from "./vendorItems.ts"

/** An item, and the field of the request that errors in it name. */
export interface PlacedItem {
  readonly item: Item
  readonly field: string
  /** The item as it was sent, or as a server wrote it, with fields that no Schema has. `undefined` for an item that the gateway made. */
  readonly sent: Json | undefined
}

/** The text of a reasoning item: its content, else its summary. */
const reasoningText = ({ content, summary }: Extract<Item, { readonly type: "reasoning" }>): string =>
  (content?.length ? content : summary ?? []).map((part) => part.text).join("\n\n")

interface OpenTurn {
  readonly role: Role
  readonly name: string | undefined
  readonly parts: Array<Part>
  readonly field: string
  hasText: boolean
  hasCall: boolean
}

/** Collects turns. Neighbouring assistant items of one reply share a turn. */
class TurnCollector {
  readonly turns: Array<OpenTurn> = []
  /** The field of the item that is read. */
  field = ""
  /** The ids of calls by the ids of their items. */
  readonly callIds = new Map<string, string>()

  say(said: Said): void {
    if ("role" in said) {
      if (said.role === "assistant") this.addAssistant("text", [Text(said.text)])
      else this.add(said.role === "user" ? "user" : "system", [Text(said.text)])
    } else if (said._tag === "Call") {
      this.addAssistant("call", [said])
    } else {
      this.add("tool", [said])
    }
  }

  add(role: Role, parts: ReadonlyArray<Part>, name?: string | null): OpenTurn {
    const turn: OpenTurn = {
      role,
      parts: [...parts],
      field: this.field,
      hasText: false,
      hasCall: false,
      name: name ? name : undefined
    }
    this.turns.push(turn)
    return turn
  }

  /** Adds to the last turn. Text or reasoning that follows text without a call begins a new turn. */
  addAssistant(kind: "text" | "reasoning" | "call", parts: ReadonlyArray<Part>, name?: string | null): void {
    let turn = this.turns.at(-1)
    if (turn?.role === "assistant" && !name && (kind === "call" || turn.hasCall || !turn.hasText)) {
      // A spread would exceed the number of arguments that a call may have.
      for (const part of parts) turn.parts.push(part)
    } else {
      turn = this.add("assistant", parts, name)
    }
    if (kind === "text") turn.hasText = true
    if (kind === "call") turn.hasCall = true
  }
}

/** The declared name of the tool that an item calls, or whose result it is. */
const declaredName = (
  type: "function" | "custom",
  { name, namespace }: { readonly name: string; readonly namespace?: string | null },
  names: ToolNames
): string => names.of({ type, namespace: namespace || undefined, name })

function* addItem(
  turns: TurnCollector,
  { field, item }: PlacedItem,
  names: ToolNames,
  faults: Faults,
  slice: Slice
): Cooperative<void> {
  turns.field = field
  if (isOtherItem(item)) {
    const said = vendorItem(item, { field, names, faults, callIds: turns.callIds })
    if (said === undefined) {
      faults.noteIgnored(field)
      turns.add("user", [omitted(item.type)])
      return
    }
    if (typeof item["id"] === "string" && typeof item["call_id"] === "string") {
      turns.callIds.set(item["id"], item["call_id"])
    }
    for (const each of said) turns.say(each)
    return
  }
  switch (item.type) {
    case "message":
    case undefined:
    case null: {
      const parts = yield* contentParts(item.content, `${field}.content`, faults, slice)
      if (item.role === "assistant") turns.addAssistant("text", parts, item.name)
      else turns.add(item.role === "user" ? "user" : "system", parts, item.name)
      return
    }
    case "reasoning": {
      const text = reasoningText(item)
      if (text !== "") turns.addAssistant("reasoning", [Reasoning(text)])
      return
    }
    case "function_call":
      turns.addAssistant("call", [call(item.call_id, declaredName("function", item, names), item.arguments)])
      return
    case "custom_tool_call":
      turns.addAssistant("call", [
        call(item.call_id, declaredName("custom", item, names), customArguments(item.input))
      ])
      return
    case "function_call_output":
    case "custom_tool_call_output": {
      const content = yield* contentParts(item.output, `${field}.output`, faults, slice)
      const { name, namespace } = item
      const type = item.type === "function_call_output" ? "function" : "custom"
      const declared = name ? declaredName(type, { name, namespace: namespace ?? null }, names) : undefined
      turns.add("tool", [result({ callId: item.call_id, name: declared, isNamed: true, content })])
      return
    }
    case "input_text":
    case "input_image":
    case "input_file":
    case "input_audio":
    case "text":
    case "image_url":
      turns.add("user", [partOf(item, field, faults)])
  }
}

/** Decodes items to turns, with the fields of their first items. */
export function* decodeItems(
  items: ReadonlyArray<PlacedItem>,
  names: ToolNames,
  faults: Faults,
  slice: Slice
): Cooperative<Required<Pick<Conversation, "turns" | "places">>> {
  const turns = new TurnCollector()
  for (const item of items) {
    if (slice.add(1)) yield slice.end()
    yield* addItem(turns, item, names, faults, slice)
  }
  return {
    turns: yield* mapCooperatively(
      slice,
      turns.turns,
      ({ name, parts, role }) => name === undefined ? { role, parts } : { role, parts, name }
    ),
    places: turns.turns.map(({ field }) => field)
  }
}
