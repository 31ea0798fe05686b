/**
 * How callers of every style say whether and how much a model should think: in their vendor's fields, and in those of servers,
 * which reach an `openai` server unchanged too.
 */
import * as Schema from "effect/Schema"
import { type Conversation, type Thinking, thinkingWords } from "../../domain/Conversation.ts"
import { isRecord, type Json } from "../../domain/json.ts"
import { optional } from "../../domain/schemas.ts"
import { passed } from "./Family.ts"
import { request } from "./requestSchema.ts"

const forServers = "Passed to a server that knows it."

const word = optional(Schema.Unknown).annotate({
  description: forServers,
  ...request({ fate: passed({ why: forServers }) })
})

/** The words of servers. A style whose vendor has one of these fields replaces it. Values are the server's to judge. */
export const serverWords = {
  reasoning_effort: word,
  reasoning: word,
  thinking: word,
  enable_thinking: word,
  thinking_budget: word,
  think: word,
  chat_template_kwargs: word
} satisfies { readonly [Name in ServerWord]: typeof word }

type ServerWord = typeof thinkingWords[number]

/** One way in which a request says it, as far as it does. */
export interface Said {
  readonly on: boolean | undefined
  readonly effort: string | undefined
  readonly budget: number | undefined
  /** Path of the field, if it is the vendor's. */
  readonly field: string | undefined
}

/** A way in which a request says nothing of it. */
const nothingSaid: Said = { on: undefined, effort: undefined, budget: undefined, field: undefined }

/** What an effort says: `none` is no thinking. */
export const effortSaid = (effort: string | null | undefined, field?: string): Said =>
  !effort
    ? nothingSaid
    : effort.toLowerCase() === "none"
    ? { ...nothingSaid, on: false, field }
    : { ...nothingSaid, on: true, effort, field }

/** What a budget says: 0 is no thinking, a negative one leaves the amount to the model. */
export const budgetSaid = (budget: number | null | undefined, field?: string): Said =>
  budget === undefined || budget === null
    ? nothingSaid
    : budget > 0
    ? { ...nothingSaid, on: true, budget, field }
    : budget === 0
    ? { ...nothingSaid, on: false, field }
    : { ...nothingSaid, field }

const asText = (value: unknown): string | undefined => typeof value === "string" ? value : undefined
const asNumber = (value: unknown): number | undefined => typeof value === "number" ? value : undefined
const asFlag = (value: unknown): boolean | undefined => typeof value === "boolean" ? value : undefined

/** What `{ type, budget_tokens }` says. */
export const typeSaid = (type: string | undefined, budget: number | null | undefined, field?: string): Said =>
  type === "disabled"
    ? { ...nothingSaid, on: false, field }
    : type === "enabled"
    ? { ...nothingSaid, on: true, budget: budget ?? undefined, field }
    : nothingSaid

const wordSaid = (name: ServerWord, value: unknown): ReadonlyArray<Said> => {
  switch (name) {
    case "reasoning_effort":
      return [effortSaid(asText(value))]
    case "reasoning":
      return isRecord(value)
        ? [
          { ...nothingSaid, on: asFlag(value["enabled"]) },
          effortSaid(asText(value["effort"])),
          budgetSaid(asNumber(value["max_tokens"]))
        ]
        : []
    case "thinking":
      return isRecord(value)
        ? [typeSaid(asText(value["type"]), asNumber(value["budget_tokens"]))]
        : [{ ...nothingSaid, on: asFlag(value) }]
    case "enable_thinking":
      return [{ ...nothingSaid, on: asFlag(value) }]
    case "thinking_budget":
      return [budgetSaid(asNumber(value))]
    case "think":
      return [{ ...nothingSaid, on: asFlag(value) }, effortSaid(asText(value))]
    case "chat_template_kwargs":
      return isRecord(value)
        ? [{ ...nothingSaid, on: asFlag(value["enable_thinking"]) }, { ...nothingSaid, on: asFlag(value["thinking"]) }]
        : []
  }
}

/** The request has a field of a server that says something of this kind. */
const isSent = (value: unknown): boolean => value !== undefined && value !== null

/** The fields of a conversation that say what the caller said of thinking. */
export type ThinkingFields = Pick<Conversation, "thinking" | "serverFields">

const nothing: ThinkingFields = { thinking: undefined, serverFields: undefined }

/**
 * What a request says of thinking: `vendor` in its vendor's words, and the words of servers among the fields of its body that are not
 * `own` to the vendor. The first of two efforts or budgets counts; off wins over on.
 */
export const thinkingFields = (
  request: { readonly [Name in ServerWord]?: unknown },
  vendor: ReadonlyArray<Said>,
  own: ReadonlyArray<ServerWord> = []
): ThinkingFields => {
  let serverFields: Record<string, Json> | undefined
  let all: Array<Said> | undefined
  for (const said of vendor) {
    if (said.field !== undefined) (all ??= []).push(said)
  }
  for (const name of thinkingWords) {
    const value = request[name]
    if (!isSent(value) || own.includes(name)) continue
    serverFields ??= {}
    serverFields[name] = value as Json
    all = (all ?? []).concat(wordSaid(name, value))
  }
  if (all === undefined) return nothing
  const modes = all.map(({ on }) => on)
  const effort = all.find((said) => said.effort !== undefined)?.effort
  const budget = all.find((said) => said.budget !== undefined)?.budget
  const fields = all.flatMap(({ field }) => field === undefined ? [] : [field])
  const thinking: Thinking = {
    mode: modes.includes(false) ? "off" : modes.includes(true) ? "on" : "auto",
    effort,
    budget,
    fields: fields.length === 0 ? undefined : fields
  }
  return { thinking, serverFields }
}
