/**
 * The contracts: the one table from which everything lists them. A client speaks one by its style, a server by its driver.
 */
import type { FamilyName } from "../domain/VendorFields.ts"
import { chatFacts } from "./chat/facts.ts"
import type { ContractFacts } from "./Contract.ts"
import { generateFacts } from "./generate/facts.ts"
import { messagesFacts } from "./messages/facts.ts"
import { responsesFacts } from "./responses/facts.ts"
import { usualCaching } from "./shared/facts.ts"

/** The contracts by the names that mark their elements and events. Drivers have the same names. */
export const contracts: Readonly<Record<FamilyName, ContractFacts>> = {
  openai: chatFacts,
  responses: responsesFacts,
  messages: messagesFacts,
  generate: generateFacts
}

/** The contracts of conversations by the names of styles. */
const conversations: ReadonlyMap<string, ContractFacts> = new Map([
  ["chat", chatFacts],
  ["responses", responsesFacts],
  ["messages", messagesFacts],
  ["generate", generateFacts]
])

/** The contracts of clients by the names of styles. Embeddings and relayed requests have the form of chat completions. */
const byStyle: ReadonlyMap<string, ContractFacts> = new Map([
  ...conversations,
  ["embeddings", chatFacts],
  ["carried", chatFacts]
])

/** The contract of a style whose replies are a turn of a conversation; `undefined` for others. */
export const contractOfConversation = (style: string): ContractFacts | undefined => conversations.get(style)

/** The contract of a style; `undefined` for an app's own, and for requests without one. */
export const contractOfStyle = (style: string | undefined): ContractFacts | undefined => byStyle.get(style ?? "")

/** The contract that a driver of this name speaks; `undefined` for the session protocol, the embedded upstream and an app's own driver. */
export const contractOfDriver = (driver: string): ContractFacts | undefined =>
  Object.hasOwn(contracts, driver) ? contracts[driver as FamilyName] : undefined

/** How a driver's server keeps prompts. */
export const cachingOf = (driver: string) => contractOfDriver(driver)?.caching ?? usualCaching
