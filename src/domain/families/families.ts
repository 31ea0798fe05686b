/** All families, and what follows from their tables as a whole. */
import type { Family } from "./Family.ts"
import { embedFamily, generateFamily } from "./generate.ts"
import { messagesFamily } from "./messages.ts"
import { chatFamily, embeddingsFamily } from "./openai.ts"
import { responsesFamily } from "./responses.ts"

export const families: ReadonlyArray<Family> = [
  chatFamily,
  embeddingsFamily,
  responsesFamily,
  messagesFamily,
  generateFamily,
  embedFamily
]

/** The hints among the fields that are carried to the server, with the reason why a server without them loses nothing. */
export const carriedHints: ReadonlyMap<string, string> = new Map(Object.entries({
  user: "Identifies the caller to the vendor.",
  safety_identifier: "Identifies the caller to the vendor.",
  metadata: "Labels for the vendor's own list of completions.",
  store: "Puts the completion into the vendor's own list.",
  prompt_cache_key: "Groups requests in the vendor's cache.",
  prompt_cache_options: "Belongs to the vendor's cache.",
  prompt_cache_retention: "Belongs to the vendor's cache."
}))

/** Carried fields that are refused where they are not carried: the reply would be of another kind. */
export const isRequired = (name: string): boolean => chatFamily.fields.get(name)?.required === true
