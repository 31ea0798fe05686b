/** The pieces of items in a reply: which events they are, and what such an event says. */
import { isRecord } from "../../domain/json.ts"
import type { Piece } from "../shared/RepeatedEvents.ts"

/** The event with a piece of a message's text. */
export const textPiece = "response.output_text.delta"

/** The number of an event, and padding that hides the length of its piece. */
export const differing = /"(sequence_number|obfuscation)": ?(?:\d+|"[^"\\]*")/g

/** The piece of a message's text that is all that an event says; its kind is the item. */
export const pieceOf = (event: unknown): Piece<unknown> | undefined => {
  if (!isRecord(event) || event["type"] !== textPiece || isRecord(event["item"]) || isRecord(event["response"])) {
    return undefined
  }
  const { delta, item_id, logprobs, output_index } = event
  return typeof delta !== "string" || delta === "" || (Array.isArray(logprobs) && logprobs.length > 0)
    ? undefined
    : { kind: output_index ?? item_id, text: delta }
}

/** The items that some servers begin by their first piece, by its event. */
export const startedBy: ReadonlyMap<string, string> = new Map([
  ["response.refusal.delta", "message"],
  ["response.reasoning_text.delta", "reasoning"],
  ["response.reasoning_summary_text.delta", "reasoning"]
])
