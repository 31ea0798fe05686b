/**
 * The reply to a request for a compaction alone.
 */
import { outputItemId, responseId, responseSeed } from "../../../contracts/responses/ids.ts"
import { otherItem } from "../../../contracts/responses/items.ts"
import { usageFields } from "../../../contracts/responses/responseText.ts"
import type { CompactedResponse, ResponseRequest } from "../../../contracts/responses/schema.ts"
import type { Usage } from "../../../domain/ReplyEvent.ts"

/** The request, which may continue a response without any input of its own. */
export const continuing = (request: ResponseRequest): ResponseRequest =>
  request.previous_response_id && (request.input ?? request.messages ?? undefined) === undefined
    ? { ...request, input: [otherItem({ type: "compaction_trigger" })] }
    : request

/** The messages of the user, and the compaction. `created` is in Unix seconds. */
export const compactedResponse = (
  uuid: string,
  created: number,
  texts: ReadonlyArray<string>,
  seal: string,
  usage: Usage
): typeof CompactedResponse.Type => {
  const seed = responseSeed(uuid)
  return {
    id: responseId(seed),
    object: "response.compaction",
    created_at: created,
    output: [
      ...texts.map((text, i) => ({
        id: outputItemId(seed, "message", i),
        type: "message" as const,
        status: "completed" as const,
        role: "user" as const,
        content: [{ type: "input_text" as const, text }]
      })),
      { id: outputItemId(seed, "compaction", texts.length), type: "compaction", encrypted_content: seal }
    ],
    usage: usageFields(usage)
  }
}
