/**
 * What an OpenAI-compatible server says beyond text and calls, in the fields of this style.
 */
import type { JsonFields } from "../../domain/json.ts"
import { citationsIn, imagesIn, imageText, refusalIn, transcriptIn } from "../shared/serverExtras.ts"
import type { MessagesUsage, PageCitation } from "./schema.ts"
import { messagesTiers } from "./tiers.ts"

/** What the style shows as text. */
export const extraText = (message: JsonFields | undefined): string =>
  refusalIn(message) + transcriptIn(message) + imageText(imagesIn(message))

/** The pages that the text cites. */
export const citationsOf = (message: JsonFields | undefined): ReadonlyArray<typeof PageCitation.Type> =>
  citationsIn(message).map(({ quote, title, url }) => ({
    type: "web_search_result_location",
    cited_text: quote,
    encrypted_index: "",
    title: title === "" ? null : title,
    url
  }))

type Tier = (typeof MessagesUsage.Type)["service_tier"]

/** The tier that served the request, by the server's own name where the style has none for it; `null` if the server names none. */
export const tierOf = (chunk: JsonFields | undefined): Tier => {
  const tier = chunk?.["service_tier"]
  return messagesTiers.get(tier) ?? (typeof tier === "string" && tier !== "" ? tier : null)
}
