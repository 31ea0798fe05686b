/**
 * From items to the turns of the canonical conversation.
 */
import type { Part, Role, Turn } from "../../domain/Conversation.ts"
import { Text } from "../../domain/Conversation.ts"
import { mapSliced, type Slice, type Sliced } from "../../domain/stream/slices.ts"
import type { Faults } from "../../http/Faults.ts"
import { type CarriedPart, contentPart } from "../shared/contentParts.ts"
import type { InputContent, Item } from "./items.ts"
import { isOtherItem } from "./items.ts"
import { customArguments } from "./tools.ts"

/** An item, and the field of the request that faults in it are told under. */
export interface PlacedItem {
  readonly item: Item
  readonly field: string
}

function* contentParts(
  content: InputContent,
  field: string,
  faults: Faults,
  slice: Slice
): Sliced<ReadonlyArray<CarriedPart>> {
  if (typeof content === "string") return content === "" ? [] : [Text(content)]
  return yield* mapSliced(slice, content, (part, i) => contentPart(part, `${field}[${i}]`, faults))
}

const argumentsText = (args: string | object | null | undefined): string =>
  typeof args === "string" ? args : JSON.stringify(args ?? {})

const reasoningText = (item: Extract<Item, { readonly type: "reasoning" }>): string => {
  const trace = item.content?.length ? item.content : item.summary ?? []
  return trace.map((part) => part.text).join("\n\n")
}

interface OpenTurn {
  readonly role: Role
  readonly parts: Array<Part>
  /** The turn has text or a call already. */
  hasText: boolean
  hasCall: boolean
}

/** Collects turns; what the assistant wrote in one go is one turn. */
const makeTurns = () => {
  const turns: Array<OpenTurn> = []
  const add = (role: Role, parts: ReadonlyArray<Part>): OpenTurn => {
    const turn = { role, parts: [...parts], hasText: false, hasCall: false }
    turns.push(turn)
    return turn
  }
  return {
    turns,
    add,
    /** A call belongs to what the assistant wrote before it; text and reasoning only to calls and reasoning before them. */
    addAssistant(kind: "text" | "reasoning" | "call", parts: ReadonlyArray<Part>) {
      let turn = turns[turns.length - 1]
      if (turn?.role === "assistant" && (kind === "call" || turn.hasCall || !turn.hasText)) {
        // One by one: there may be more than a call takes arguments.
        for (const part of parts) turn.parts.push(part)
      } else {
        turn = add("assistant", parts)
      }
      if (kind === "text") turn.hasText = true
      if (kind === "call") turn.hasCall = true
    }
  }
}

function* itemTurn(
  turns: ReturnType<typeof makeTurns>,
  { field, item }: PlacedItem,
  faults: Faults,
  slice: Slice
): Sliced<void> {
  if (isOtherItem(item)) {
    // Never dropped silently: what cannot be carried is named to the model.
    turns.add("user", [Text(`[${item.type} omitted]`)])
    return
  }
  switch (item.type) {
    case "message":
    case undefined:
    case null: {
      const parts = yield* contentParts(item.content, `${field}.content`, faults, slice)
      if (item.role === "assistant") turns.addAssistant("text", parts)
      else turns.add(item.role === "user" ? "user" : "system", parts)
      return
    }
    case "reasoning": {
      const text = reasoningText(item)
      if (text !== "") turns.addAssistant("reasoning", [{ _tag: "Reasoning", text }])
      return
    }
    case "function_call":
    case "custom_tool_call":
      turns.addAssistant("call", [{
        _tag: "Call",
        id: item.call_id ?? "",
        name: item.name,
        arguments: item.type === "function_call" ? argumentsText(item.arguments) : customArguments(item.input)
      }])
      return
    case "function_call_output":
    case "custom_tool_call_output":
      turns.add("tool", [{
        _tag: "Result",
        callId: item.call_id ?? "",
        name: item.name ?? undefined,
        content: yield* contentParts(item.output, `${field}.output`, faults, slice),
        isError: false
      }])
      return
    case "input_text":
    case "input_image":
    case "input_file":
    case "input_audio":
    case "text":
    case "image_url":
      turns.add("user", [contentPart(item, field, faults)])
  }
}

/** The turns that items stand for. */
export function* turnsOf(items: ReadonlyArray<PlacedItem>, faults: Faults, slice: Slice): Sliced<ReadonlyArray<Turn>> {
  const turns = makeTurns()
  for (const item of items) {
    if (slice.add(1)) yield slice.end()
    yield* itemTurn(turns, item, faults, slice)
  }
  return yield* mapSliced(slice, turns.turns, ({ parts, role }) => ({ role, parts }))
}
