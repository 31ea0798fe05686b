/** Fields of the `openai` contract that the schemas of chat completions and embeddings lack. */
import { ignorable, local, oneOf, passed, refusedByDecoder, reported, type Table } from "./Family.ts"

const isTextOnly = (value: unknown): boolean => Array.isArray(value) && value.every((kind) => kind === "text")

/** Marks of the vendor's cache, which servers in front of other vendors have too. */
export const cacheMarks: Table = {
  prompt_cache_breakpoint: ignorable("Marks what the provider caches."),
  cache_control: ignorable("Marks what the provider caches.")
}

const sources = ignorable("Repeats what a reply said of its sources.")

export const filePartFields: Table = { detail: reported("The server decides how it reads files."), ...cacheMarks }

export const outputTextFields: Table = {
  annotations: sources,
  logprobs: ignorable("Repeats what a reply said of its tokens."),
  ...cacheMarks
}

export const assistantFields: Table = {
  audio: reported("The server keeps no audio of earlier replies."),
  annotations: sources,
  ...cacheMarks
}

export const toolCallFields: Table = { index: local(ignorable("Numbers the calls of a streamed reply.")) }

export const streamOptionsFields: Table = { include_obfuscation: local(ignorable("The gateway pads no events.")) }

export const functionsOnly = refusedByDecoder("Tools are functions in this style.")

/** Fields of a chat completion. */
export const chatFields: Table = {
  logprobs: passed({ isSilent: oneOf(false) }),
  top_logprobs: passed(),
  service_tier: passed(),
  verbosity: passed(),
  prediction: passed(),
  modalities: passed({ required: true, isSilent: isTextOnly }),
  audio: passed(),
  web_search_options: passed(),
  moderation: passed(),
  user: passed(),
  metadata: passed(),
  store: passed(),
  safety_identifier: passed(),
  prompt_cache_key: passed(),
  prompt_cache_options: passed(),
  prompt_cache_retention: passed(),
  functions: local(reported("The format before tools: declare tools instead.")),
  function_call: local(reported("The format before tools: use tool_choice instead.", "auto", "none"))
}

/** The ignorable fields among the fields that are passed to the server, with the reason why a server without them loses nothing. */
export const ignorableFields: ReadonlyMap<string, string> = new Map(Object.entries({
  user: "Identifies the client to the provider.",
  safety_identifier: "Identifies the client to the provider.",
  metadata: "Labels for the provider's own list of completions.",
  store: "Puts the completion into the provider's own list.",
  prompt_cache_key: "Groups requests in the provider's cache.",
  prompt_cache_options: "Belongs to the provider's cache.",
  prompt_cache_retention: "Belongs to the provider's cache."
}))

/** Passed fields that are refused where they are not passed: the reply would be of another kind. */
export const isRequired = (name: string): boolean => chatFields[name]?.required === true
