/**
 * A small style, for the test that adds one.
 */
import type { Ask, Asked, Style } from "../../../src/styles/Style.ts"
import { ToyGroup } from "./Api.ts"

export const toy = {
  group: ToyGroup,
  basePaths: ["/toy"],
  operation: "chat",
  ask: ({ model, stream, text }: Ask): Asked => ["/toy/play", { toy: model, say: text, bit_by_bit: stream }]
} satisfies Style
