/**
 * What an entry of the contract's list of models says beside its name (https://docs.anthropic.com/en/api/models-list).
 */
import * as Schema from "effect/Schema"

const Supported = Schema.Struct({ supported: Schema.Boolean })

/** What a model can do. An unknown capability is left out. */
export const Capabilities = Schema.Struct({
  effort: Schema.optionalKey(
    Schema.Struct({
      supported: Schema.Boolean,
      low: Supported,
      medium: Supported,
      high: Supported,
      xhigh: Supported,
      max: Supported
    })
  ),
  image_input: Schema.optionalKey(Supported),
  pdf_input: Schema.optionalKey(Supported),
  structured_outputs: Schema.optionalKey(Supported),
  thinking: Schema.optionalKey(Supported)
})

/** What a model's facts say, with the words of this form. */
export const factFields = {
  max_input_tokens: Schema.NullOr(Schema.Int),
  max_tokens: Schema.NullOr(Schema.Int),
  capabilities: Schema.NullOr(Capabilities)
}
