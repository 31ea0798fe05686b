/**
 * The contracts: the one table from which everything lists them. A client speaks one by its style, a server by its driver.
 */
import type { FamilyName } from "../domain/VendorFields.ts"
import { chat } from "./chat/contract.ts"
import type { Contract } from "./Contract.ts"
import { generate } from "./generate/contract.ts"
import { messages } from "./messages/contract.ts"
import { responses } from "./responses/contract.ts"
import { usualCaching } from "./shared/facts.ts"

/** The contracts by the names that mark their elements and events. Drivers have the same names. */
export const contracts: Readonly<Record<FamilyName, Contract>> = { openai: chat, responses, messages, generate }

/** The contracts of conversations by the names of styles. */
const conversations: ReadonlyMap<string, Contract> = new Map(Object.entries({ chat, responses, messages, generate }))

/** The contracts of clients by the names of styles. Embeddings and relayed requests have the form of chat completions. */
const byStyle: ReadonlyMap<string, Contract> = new Map([
  ...conversations,
  ["embeddings", chat],
  ["carried", chat]
])

/** The contract of a style whose replies are a turn of a conversation; `undefined` for others. */
export const contractOfConversation = (style: string): Contract | undefined => conversations.get(style)

/** The contract of a style; `undefined` for an app's own, and for requests without one. */
export const contractOfStyle = (style: string | undefined): Contract | undefined => byStyle.get(style ?? "")

/** The contract that a driver of this name speaks; `undefined` for the session protocol, the embedded upstream and an app's own driver. */
export const contractOfDriver = (driver: string): Contract | undefined =>
  Object.hasOwn(contracts, driver) ? contracts[driver as FamilyName] : undefined

/** How a driver's server keeps prompts. */
export const cachingOf = (driver: string) => contractOfDriver(driver)?.facts.caching ?? usualCaching
