/**
 * A small style, for the test that adds one.
 */
import type { SamplePrompt, SampleRequest, Style } from "../../../src/styles/Style.ts"
import { ToyGroup } from "./Api.ts"

export const toy = {
  group: ToyGroup,
  basePaths: ["/toy"],
  operation: "chat",
  ask: (
    { model, stream, text }: SamplePrompt
  ): SampleRequest => ["/toy/play", { toy: model, say: text, bit_by_bit: stream }]
} satisfies Style
