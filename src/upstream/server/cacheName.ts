/**
 * The name of each conversation's cache, by which servers send its turns to the place that has it.
 */
import type { Conversation } from "../../domain/Conversation.ts"
import { type FamilyName, isWholeFor } from "../../domain/VendorFields.ts"
import type { CompletionRequest } from "../Upstream.ts"
import type { ServerSettings } from "./ServerOptions.ts"

/** Hosts whose vendors document the field `prompt_cache_key`: OpenAI, Azure. */
const documents = /^(?:api\.openai\.com|[\w-]+\.openai\.azure\.com)$/i

const field = "prompt_cache_key"

/** How a server gets the name: in a field of the body, in a header, or not at all. */
export interface CacheNames {
  /** The conversation with the name as its field. The caller's own name stays. */
  readonly named: (request: CompletionRequest) => Conversation
  /** Headers of a request. */
  readonly headers: (request: CompletionRequest) => { readonly [name: string]: string }
}

const withName = (conversation: Conversation, contract: FamilyName, nameOf: () => string): Conversation => {
  const { serverFields = {}, vendorFields } = conversation
  const own = vendorFields !== undefined && isWholeFor(conversation, contract) ? vendorFields : undefined
  if ((own?.fields[field] ?? serverFields[field] ?? undefined) !== undefined) return conversation
  const name = { [field]: nameOf() }
  return {
    ...conversation,
    serverFields: { ...serverFields, ...name },
    ...(own === undefined ? {} : { vendorFields: { ...own, fields: { ...own.fields, ...name } } })
  }
}

/** How a server that is asked by a contract gets the name. */
export const cacheNames = (
  { baseUrl, promptCache }: Pick<ServerSettings, "baseUrl" | "promptCache">,
  contract: FamilyName
): CacheNames => {
  const host = URL.canParse(baseUrl) ? new URL(baseUrl).hostname : ""
  const way = promptCache?.key ?? (documents.test(host) ? field : "off")
  const header = way.startsWith("header ") ? way.slice("header ".length).toLowerCase() : undefined
  return {
    named: ({ cacheName, conversation }) =>
      way === field && cacheName !== undefined ? withName(conversation, contract, cacheName) : conversation,
    headers: ({ cacheName }) => header === undefined || cacheName === undefined ? {} : { [header]: cacheName() }
  }
}
