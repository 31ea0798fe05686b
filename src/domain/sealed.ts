/**
 * What only the upstream reads of a call, in the form of an OpenAI-compatible server, and the content-generation style's place
 * for it.
 */
import type { Json, JsonFields } from "./json.ts"
import { isFields } from "./replyExtras.ts"

/** The signature of a call, which the content-generation style has beside the call. */
export const signatureOf = (sealed: JsonFields | undefined): string | undefined => {
  const extra = sealed?.["extra_content"]
  const google: Json | undefined = isFields(extra) ? extra["google"] : undefined
  const signature = isFields(google) ? google["thought_signature"] : undefined
  return typeof signature === "string" ? signature : undefined
}

/** What a signature of the content-generation style is to an OpenAI-compatible server. */
export const sealedBy = (signature: unknown): JsonFields | undefined =>
  typeof signature === "string" && signature !== ""
    ? { extra_content: { google: { thought_signature: signature } } }
    : undefined

/** What the vendor's document names in place of a signature, for calls that another model made. */
export const standInSignature = "skip_thought_signature_validator"

/** Models that refuse calls of the current turn without a signature. Earlier generations refuse none. */
export const wantsSignatures = (model: string): boolean => /gemini-(?:[3-9]|[1-9]\d)/i.test(model)

const thinkingField = "thinking_text"

/** What is kept of a call for a server that wants the thinking before it back. */
export const sealedThinking = (text: string): JsonFields => ({ [thinkingField]: text })

/** The thinking that is kept of a call, and the other fields. */
export const withoutThinking = (
  { [thinkingField]: text, ...fields }: JsonFields & { readonly [thinkingField]?: Json }
): { readonly text: string; readonly fields: JsonFields } => ({
  text: typeof text === "string" ? text : "",
  fields: fields as JsonFields
})
