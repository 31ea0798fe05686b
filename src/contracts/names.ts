/** The names of contracts, for types that hold one. What is true of each is in its facts. */

/** The contracts by which elements, events and drivers of vendors are named. */
export type FamilyName = "openai" | "responses" | "messages" | "generate"

/** The vendors whose contracts these are, of which chat completions and Responses are one. */
export type VendorName = Exclude<FamilyName, "responses">

/** The API of a server's completions, of which `auto` leaves the choice to the driver. */
export type ServerApi = "chat" | "responses" | "auto"

/** The contract in whose words all contracts read what servers say beyond text and calls: refusals, pictures, citations. */
export const commonWords: FamilyName = "openai"
