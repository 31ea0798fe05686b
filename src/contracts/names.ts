/** The names of contracts, for types that hold one. What is true of each is in its facts. */

/** The contracts by which elements, events and drivers of vendors are named. */
export type FamilyName = "openai" | "responses" | "messages" | "generate"

/** The vendors whose contracts these are, of which chat completions and Responses are one. */
export type VendorName = Exclude<FamilyName, "responses">

/** The contract that serves completions of a server with several; `auto` leaves it to each request. */
export type ServingContract = "openai" | "responses" | "auto"

/** The same by the words of the setting `api`. */
export const contractOfApi = { chat: "openai", responses: "responses", auto: "auto" } as const

/** The contract in whose words all contracts read what servers say beyond text and calls: refusals, pictures, citations. */
export const commonWords: FamilyName = "openai"
