/** Fields of the `openai` contract that the schemas of chat completions and embeddings lack. */
import { carried, hint, local, oneOf, refusedByDecoder, type Table, told } from "./Family.ts"

const isTextOnly = (value: unknown): boolean => Array.isArray(value) && value.every((kind) => kind === "text")

/** Marks of the vendor's cache, which servers in front of other vendors have too. */
export const cacheMarks: Table = {
  prompt_cache_breakpoint: hint("Marks what the vendor caches."),
  cache_control: hint("Marks what the vendor caches.")
}

const sources = hint("Repeats what a reply said of its sources.")

export const filePartFields: Table = { detail: told("The server decides how it reads files."), ...cacheMarks }

export const outputTextFields: Table = {
  annotations: sources,
  logprobs: hint("Repeats what a reply said of its tokens."),
  ...cacheMarks
}

export const assistantFields: Table = {
  audio: told("The server keeps no audio of earlier replies."),
  annotations: sources,
  ...cacheMarks
}

export const toolCallFields: Table = { index: local(hint("Numbers the calls of a streamed reply.")) }

export const streamOptionsFields: Table = { include_obfuscation: local(hint("The gateway pads no events.")) }

export const functionsOnly = refusedByDecoder("Tools are functions in this style.")

export const oneChoice = refusedByDecoder("A reply has one choice.")

/** Fields of a chat completion. */
export const chatFields: Table = {
  logprobs: carried({ isSilent: oneOf(false) }),
  top_logprobs: carried(),
  service_tier: carried(),
  verbosity: carried(),
  prediction: carried(),
  modalities: carried({ required: true, isSilent: isTextOnly }),
  audio: carried(),
  web_search_options: carried(),
  moderation: carried(),
  user: carried(),
  metadata: carried(),
  store: carried(),
  safety_identifier: carried(),
  prompt_cache_key: carried(),
  prompt_cache_options: carried(),
  prompt_cache_retention: carried(),
  functions: local(told("The format before tools: declare tools instead.")),
  function_call: local(told("The format before tools: use tool_choice instead.", "auto", "none"))
}

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
export const isRequired = (name: string): boolean => chatFields[name]?.required === true
