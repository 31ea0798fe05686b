/**
 * Replies of servers that speak this contract themselves: the vendor fields beside the events go back as they came.
 */
import type { JsonFields } from "../../domain/json.ts"
import type { Reply } from "../../domain/Reply.ts"
import type { Usage } from "../../domain/ReplyEvent.ts"

/** What a server says of a whole message beside its content. */
export interface VendorMessage {
  /** Fields of the message, its id included. */
  readonly message: JsonFields
  readonly end: JsonFields | undefined
  readonly usage: JsonFields | undefined
}

/** What a messages server says of a whole reply; `undefined` for replies of other servers. */
export const vendorMessageOf = ({ vendorExtras }: Reply): VendorMessage | undefined => {
  if (vendorExtras?.family !== "messages") return undefined
  const { choice: end, chunk: message = {}, usage } = vendorExtras.extras
  return { message, end, usage }
}

/** Stop reasons of the server that one of the gateway's stands for. */
const wider: { readonly [reason: string]: ReadonlySet<unknown> } = {
  max_tokens: new Set(["model_context_window_exceeded"])
}

const ofOthers: ReadonlySet<unknown> = new Set([
  "end_turn",
  "stop_sequence",
  "tool_use",
  "max_tokens",
  "refusal",
  "model_context_window_exceeded"
])

/** The server's reason holds unless the gateway has ended the reply otherwise, or has found calls in its text. */
const holds = (said: unknown, reason: string): boolean =>
  said === reason || wider[reason]?.has(said) === true ||
  ((reason === "end_turn" || reason === "max_tokens") && typeof said === "string" && !ofOthers.has(said))

/** The fields by which the server ended the message, as far as its end is the end of the reply. */
export const vendorStop = (end: JsonFields | undefined, reason: string): JsonFields | undefined => {
  if (end === undefined || holds(end["stop_reason"], reason)) return end
  const { stop_details: _, stop_reason: __, stop_sequence: ___, ...rest } = end
  return rest
}

/** The server's own token counts of the whole reply, if it has any. */
export const vendorUsage = <A extends { readonly input_tokens: number }>(
  counts: A,
  own: JsonFields | undefined,
  usage: Usage
): A =>
  own === undefined
    ? counts
    : { input_tokens: counts.input_tokens, ...own, output_tokens: usage.completionTokens } as unknown as A
