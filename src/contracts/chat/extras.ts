/**
 * What OpenAI-compatible servers say beyond the fields that the gateway models: logprobs, annotations, pictures, audio,
 * refusals, fingerprints, costs, signatures. Values that say nothing are left out.
 */
import { isRecord, type JsonFields, type JsonRecord } from "../../domain/json.ts"
import { type UpstreamEvent, UpstreamExtra } from "../../domain/UpstreamEvent.ts"
import { Changed, names, others } from "../shared/extraFields.ts"
import { asString, isShallow } from "../shared/json.ts"

/** Modelled fields by place. `obfuscation` is padding that hides the length of a chunk; the gateway cuts chunks anew. */
const ofChunk = names("id object created model choices usage error obfuscation __proto__")
const ofChoice = names("index delta message finish_reason usage __proto__")
const ofMessage = names("role content reasoning_content reasoning tool_calls function_call __proto__")
const ofCall = names("index id type function __proto__")
const ofUsage = names("prompt_tokens completion_tokens total_tokens __proto__")

const isImage = (part: JsonRecord): boolean => isRecord(part["image_url"]) || typeof part["image_url"] === "string"

/** Parts of a message's content that are not text or thinking: pictures, and parts of other kinds. */
const partsOf = (content: unknown): JsonFields | undefined => {
  if (!Array.isArray(content)) return undefined
  const parts = content.filter((part: unknown): part is JsonRecord =>
    isRecord(part) && typeof part["text"] !== "string" && part["type"] !== "thinking" && isShallow(part)
  ) as ReadonlyArray<JsonRecord & JsonFields>
  const images = parts.filter(isImage)
  const others = parts.filter((part) => !isImage(part))
  return parts.length === 0 ? undefined : {
    ...(images.length === 0 ? {} : { images }),
    ...(others.length === 0 ? {} : { content_parts: others })
  }
}

/** Fields of a call that only the server reads. */
export const sealedOf = (call: JsonRecord): JsonFields | undefined => others(call, ofCall)

/** The extra fields of one reply. */
export class Extras {
  /** Servers repeat the chunk's own fields in every chunk. */
  private readonly ofReply = new Changed()

  /** What a chunk says of the whole reply, unless an earlier chunk said the same. */
  chunk(value: JsonRecord, out: Array<UpstreamEvent>): void {
    const fields = this.ofReply.changed(others(value, ofChunk))
    if (fields !== undefined) out.push(UpstreamExtra("openai", "chunk", fields))
  }

  choice(value: JsonRecord, out: Array<UpstreamEvent>): void {
    const fields = others(value, ofChoice)
    if (fields !== undefined) out.push(UpstreamExtra("openai", "choice", fields))
  }

  message(value: JsonRecord, out: Array<UpstreamEvent>): void {
    const fields = others(value, ofMessage)
    const parts = partsOf(value["content"])
    if (fields !== undefined) out.push(UpstreamExtra("openai", "message", fields))
    if (parts !== undefined) out.push(UpstreamExtra("openai", "message", parts))
  }

  /** What the last usage of the reply says beyond the counts. */
  usage(value: JsonRecord | undefined, out: Array<UpstreamEvent>): void {
    const fields = value === undefined ? undefined : others(value, ofUsage)
    if (fields !== undefined) out.push(UpstreamExtra("openai", "usage", fields))
  }
}

/** The text of a refusal in a message. */
export const refusalOf = (message: JsonRecord): string => asString(message["refusal"]) ?? ""
