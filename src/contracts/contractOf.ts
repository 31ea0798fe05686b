/**
 * Finds the contract of a client by its style, and that of a server by its driver.
 */
import type { Contract } from "./Contract.ts"
import { contracts } from "./contracts.ts"
import { type FamilyName, type ProtocolFacts, protocols } from "./names.ts"
import { usualCaching } from "./shared/facts.ts"

/** The contract that a driver of this name speaks; `undefined` for the session protocol, the embedded upstream and an app's own driver. */
export const contractOfDriver = (driver: string): Contract | undefined =>
  Object.hasOwn(contracts, driver) ? contracts[driver as FamilyName] : undefined

const ofConversations: ReadonlyMap<string, Contract> = new Map(
  Object.entries<ProtocolFacts>(protocols).flatMap(([name, { style }]) => {
    const contract = contractOfDriver(name)
    return style === undefined || contract === undefined ? [] : [[style, contract]]
  })
)

/** Embeddings and relayed requests have the form of chat completions. */
const byStyle: ReadonlyMap<string, Contract> = new Map([
  ...ofConversations,
  ["embeddings", contracts.openai],
  ["carried", contracts.openai]
])

/** The contract of a style whose replies are a turn of a conversation; `undefined` for others. */
export const contractOfConversation = (style: string): Contract | undefined => ofConversations.get(style)

/** The contract of a style; `undefined` for an app's own, and for requests without one. */
export const contractOfStyle = (style: string | undefined): Contract | undefined => byStyle.get(style ?? "")

/** How a driver's server keeps prompts. */
export const cachingOf = (driver: string) => contractOfDriver(driver)?.facts.caching ?? usualCaching

/** True if the logins of a style's clients belong to the vendor of a driver's server. */
export const isOfVendor = (style: string | undefined, driver: string): boolean => {
  const vendor = contractOfStyle(style)?.facts.vendor
  return vendor !== undefined && contractOfDriver(driver)?.facts.vendor === vendor
}
