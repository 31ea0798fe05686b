/**
 * Entries and pages of lists of models in Anthropic's form (https://docs.anthropic.com/en/api/models-list). An unknown number is `null`.
 */
import * as Schema from "effect/Schema"
import { gatewayError } from "../../domain/GatewayError.ts"
import type { Effort, ModelFacts } from "../../domain/modelFacts.ts"
import { modelsCreated } from "../../domain/models.ts"
import { claudePrefix } from "../../domain/routes.ts"
import { type Capabilities, factFields } from "./modelFields.ts"

/** An entry of the list in this form. */
export const AnthropicModel = Schema.Struct({
  id: Schema.String,
  type: Schema.Literal("model"),
  display_name: Schema.String,
  created_at: Schema.String,
  ...factFields
}).annotate({ identifier: "AnthropicModel" })

/** A page of the list in this form. */
export const AnthropicModelPage = Schema.Struct({
  data: Schema.Array(AnthropicModel),
  has_more: Schema.Boolean,
  first_id: Schema.NullOr(Schema.String),
  last_id: Schema.NullOr(Schema.String)
}).annotate({ identifier: "AnthropicModelPage" })

/** The time of every entry, since models have no date. */
export const createdAt = new Date(modelsCreated * 1000).toISOString().replace(".000Z", "Z")

const capabilitiesOf = ({ efforts, input, schemas }: ModelFacts): typeof Capabilities.Type | null => {
  if (efforts === undefined && input === undefined && schemas === undefined) return null
  const reasons = efforts !== undefined && efforts.length > 0
  const has = (level: Effort) => ({ supported: efforts?.includes(level) === true })
  return {
    ...(efforts === undefined ? {} : {
      effort: {
        supported: reasons,
        low: has("low"),
        medium: has("medium"),
        high: has("high"),
        xhigh: has("xhigh"),
        max: has("max")
      },
      thinking: { supported: reasons }
    }),
    ...(input === undefined ? {} : {
      image_input: { supported: input.includes("image") },
      pdf_input: { supported: input.includes("pdf") }
    }),
    ...(schemas === undefined ? {} : { structured_outputs: { supported: schemas === "binding" } })
  }
}

/** The fields of a model's facts. */
export const factsInForm = (facts: ModelFacts) => ({
  max_input_tokens: facts.context_window ?? null,
  max_tokens: facts.max_output_tokens ?? null,
  capabilities: capabilitiesOf(facts)
})

/** The id that Claude Code gets, which lists ids with its vendor's words alone. */
export const idForClaudeCode = (id: string): string => /claude|anthropic/i.test(id) ? id : `${claudePrefix}${id}`

/** The entry of a model. */
export const anthropicModel = (id: string, name: string, facts: ModelFacts): typeof AnthropicModel.Type => ({
  id,
  type: "model",
  display_name: facts.display_name ?? name,
  created_at: createdAt,
  ...factsInForm(facts)
})

/** The most entries of a page, which is also the default: a client that does not page gets all that a page may have. */
const mostOnPage = 1_000

/** The query of a page. */
export interface PageQuery {
  readonly limit?: string | undefined
  readonly after_id?: string | undefined
  readonly before_id?: string | undefined
}

/** True for the first page at its largest. */
export const isFirst = ({ after_id, before_id, limit = String(mostOnPage) }: PageQuery): boolean =>
  after_id === undefined && before_id === undefined && limit === String(mostOnPage)

/** The page of a list that a query asks for. Fails with `invalid_request` for a wrong limit, and for an id that the list lacks. */
export const pageOf = <Entry extends { readonly id: string }>(
  entries: ReadonlyArray<Entry>,
  { after_id, before_id, limit = String(mostOnPage) }: PageQuery
) => {
  const wrong = (param: string, rule: string) => gatewayError("invalid_request", `${param} ${rule}`, { param })
  const count = /^\d{1,4}$/.test(limit) ? Number(limit) : 0
  if (count < 1 || count > mostOnPage) return wrong("limit", `must be a number from 1 to ${mostOnPage}`)
  if (after_id !== undefined && before_id !== undefined) return wrong("before_id", "must be unset beside after_id")
  const named = after_id ?? before_id
  const place = named === undefined ? -1 : entries.findIndex(({ id }) => id === named)
  if (named !== undefined && place === -1) {
    return wrong(after_id === undefined ? "before_id" : "after_id", "must be the id of a model of the list")
  }
  const [first, end] = before_id === undefined
    ? [place + 1, Math.min(entries.length, place + 1 + count)]
    : [Math.max(0, place - count), place]
  const data = entries.slice(first, end)
  return {
    data,
    has_more: before_id === undefined ? end < entries.length : first > 0,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null
  }
}
