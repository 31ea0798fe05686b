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
