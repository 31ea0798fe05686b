/**
 * Thinking in the format of a content-generation server: `thinkingConfig`.
 */
import type { Thinking } from "../../domain/Conversation.ts"
import type { JsonFields } from "../../domain/json.ts"
import { wantsSignatures } from "../../domain/sealed.ts"
import type { UpstreamModel } from "../../domain/UpstreamModel.ts"

/** The words of a model entry that this protocol has: a level, or a budget. */
export type ThinkingWords = "effort" | "template" | "budget" | "none"

/** Budgets of efforts, for models that know no levels; an unknown effort has that of `high`. */
const budgets: ReadonlyMap<string, number> = new Map([
  ["minimal", 1_024],
  ["low", 2_048],
  ["medium", 8_192]
])
const highBudget = 16_384

/** A negative budget leaves the amount to the model. */
const ownAmount = -1

/** Levels of efforts; those above `high` have none of their own. */
const levels: ReadonlyMap<string, string> = new Map([
  ["minimal", "MINIMAL"],
  ["low", "LOW"],
  ["medium", "MEDIUM"]
])

/** The generation of the vendor's models that wants signatures reads levels; the earlier ones refuse them. */
const readsLevels = wantsSignatures

const amountOf = ({ budget, effort, mode }: Thinking, hasLevels: boolean): JsonFields => {
  if (mode === "off") return { thinkingBudget: 0 }
  if (budget !== undefined) return { thinkingBudget: budget }
  if (effort === undefined) return mode === "on" && !hasLevels ? { thinkingBudget: ownAmount } : {}
  const word = effort.toLowerCase()
  return hasLevels ? { thinkingLevel: levels.get(word) ?? "HIGH" } : { thinkingBudget: budgets.get(word) ?? highBudget }
}

/** A model as it is asked: the name for the server, and the words of its entry. */
export interface ThinkingModel {
  readonly model: UpstreamModel
  readonly name: string
  readonly words: ThinkingWords | undefined
}

/**
 * What a caller wants of thinking, as `thinkingConfig`; `undefined` if the caller says nothing. Thoughts are asked for where they
 * are shown, since servers refuse the request for models without thinking.
 */
export const thinkingConfig = (
  thinking: Thinking | undefined,
  { model, name, words }: ThinkingModel
): JsonFields | undefined => {
  if (words === "none") return undefined
  const hasLevels = words === "effort" || (words !== "budget" && readsLevels(name))
  const amount = thinking === undefined ? {} : amountOf(thinking, hasLevels)
  const thinks = thinking !== undefined && (thinking.mode === "on" || Object.keys(amount).length > 0)
  const isShown = model.reasoning === true ? thinking?.mode !== "off" : model.reasoning === "auto" && thinks
  const config = isShown && thinking?.mode !== "off" ? { includeThoughts: true, ...amount } : amount
  return Object.keys(config).length === 0 ? undefined : config
}
