/** The pictures of a prompt as a unit of its bill, `per_input_image`. Servers do not count them, so the request's own are counted. Pure. */
import type { Conversation, Part } from "./Conversation.ts"
import type { Price, PriceLevel } from "./prices.ts"
import type { PieceUnit, Usage } from "./units.ts"

const unit = "per_input_image" satisfies PieceUnit

const isIn = ({ above, units }: PriceLevel): boolean => units.has(unit) || above.some(({ units }) => units.has(unit))

const hasUnit = (price: Price): boolean => isIn(price) || [...price.tiers.values()].some(isIn)

const imagesIn = (parts: ReadonlyArray<Part>): number => {
  let count = 0
  for (const part of parts) {
    if (part._tag === "Image") count++
    else if (part._tag === "Result") count += imagesIn(part.content)
  }
  return count
}

/** The pictures of a conversation, with those in the results of tools. */
export const inputImagesOf = ({ turns }: Pick<Conversation, "turns">): number => {
  let count = 0
  for (const { parts } of turns) count += imagesIn(parts)
  return count
}

/** A usage with the pictures of its prompt, if the entry has a price for them. */
export const withInputImages = (
  usage: Usage,
  price: Price | undefined,
  sent: Pick<Conversation, "turns"> | undefined
): Usage => {
  const images = sent === undefined || price === undefined || !hasUnit(price) ? 0 : inputImagesOf(sent)
  const { details } = usage
  return images === 0 ? usage : { ...usage, details: { ...details, pieces: { ...details?.pieces, [unit]: images } } }
}
