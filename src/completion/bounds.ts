/**
 * The most that a completion can use, which strict limits of keys reserve: its prompt with a margin, its limit of output, and the calls of
 * the vendor's tools. A request without a bound is refused with the field to set.
 */
import type { GatewayConfig } from "../config/GatewayConfig.ts"
import { contracts } from "../contracts/contracts.ts"
import type { Conversation } from "../domain/Conversation.ts"
import { estimateTokens, withMargin } from "../domain/estimateTokens.ts"
import { GatewayError, invalidRequest } from "../domain/GatewayError.ts"
import { inputImagesOf } from "../domain/inputImages.ts"
import { outputFault } from "../domain/outputFields.ts"
import type { Route, Target } from "../domain/routes.ts"
import { isWholeFor, type VendorFields } from "../domain/VendorFields.ts"
import { reminder } from "../sieve/declaration.ts"
import { type Driver, servingDriver } from "../upstream/Upstream.ts"
import type { Bound } from "../usage/keyRules.ts"
import { mostSummaryTokens, type ServedInput } from "./CompletionInput.ts"
import { asksTwice } from "./toolPolicy.ts"
import { limitField } from "./unsentFields.ts"

/** The caller's limit of output. Servers that get two heed either. */
const limitOf = ({ sampling: { maxCompletionTokens, maxTokens } }: Conversation): number | undefined =>
  maxCompletionTokens === undefined && maxTokens === undefined
    ? undefined
    : Math.max(maxCompletionTokens ?? 0, maxTokens ?? 0)

/** The limit of output in the entry of a target's model. */
const limitOfEntry = ({ upstreams }: GatewayConfig, { model, upstream }: Target): number | undefined =>
  upstreams.get(upstream)?.models.find(({ id }) => id === model.id)?.max_tokens

/** A whole request of a contract with its limit of output. */
const withLimitOf = (request: VendorFields, limit: number): VendorFields => ({
  ...request,
  fields: { ...request.fields, [contracts[request.vendor].facts.words.outputLimit]: limit }
})

/** The conversation with the limit of output of a target's entry, unless its caller has one. */
export const withLimit = (conversation: Conversation, config: GatewayConfig, target: Target): Conversation => {
  const maxTokens = limitOfEntry(config, target)
  if (maxTokens === undefined || limitOf(conversation) !== undefined) return conversation
  const { vendorFields } = conversation
  // A server of the contract gets the request as its caller wrote it.
  const own = vendorFields?.wholeElement === true
    ? { vendorFields: withLimitOf(vendorFields, maxTokens) }
    : {}
  return { ...conversation, ...own, sampling: { ...conversation.sampling, maxTokens } }
}

/** Texts of the body that may choose a factor of the price. */
const wordsOf = ({ serverFields, vendorFields }: Conversation): Record<string, string> => {
  const words: Record<string, string> = {}
  for (const fields of [vendorFields?.fields ?? {}, serverFields ?? {}]) {
    for (const [name, value] of Object.entries(fields)) if (typeof value === "string") words[name] = value
  }
  return words
}

/** Whether a driver sends the limit of output of a conversation. */
const sendsLimit = ({ contract, sends }: Driver, { model }: Target, conversation: Conversation): boolean =>
  sends.sampling("maxTokens", model, conversation) ||
  (sends.leastOutput !== undefined && !isWholeFor(conversation, contract))

/** The tokens of output that a driver asks for at most, over all choices, for a conversation with a limit. A request of several replies has a summary. */
export const mostOutput = (
  { replies = 1 }: Pick<ServedInput, "replies">,
  conversation: Conversation,
  { sends }: Pick<Driver, "sends">
): number =>
  Math.max(limitOf(conversation) ?? 0, sends.leastOutput ?? 0, replies > 1 ? mostSummaryTokens : 0) *
  conversation.choices

/** The most that a completion uses at each target of a route that may serve it, or the error of one without a bound. `now`: monotonic milliseconds. */
export const boundsOf = (
  input: ServedInput,
  route: Pick<Route, "id" | "targets">,
  promptTokens: number,
  driverOf: (upstream: string) => Driver | undefined,
  now: number
): ReadonlyArray<Bound> | GatewayError => {
  const { config, conversation, replies = 1, request: { outputs, style } } = input
  const bounds: Array<Bound> = []
  const words = wordsOf(conversation)
  const tier = words["service_tier"]?.toLowerCase()
  const pieces = { per_input_image: inputImagesOf(conversation) }
  for (const target of route.targets) {
    const known = target.enabled ? driverOf(target.upstream) : undefined
    if (known === undefined) continue
    const limited = withLimit(conversation, config, target)
    const driver = servingDriver(known, target.model, limited, now)
    const limit = limitOf(limited)
    if (limit === undefined) {
      const field = limitField(style)
      return invalidRequest(
        `${field}: a strict limit or budget applies, which reserves the most that a reply can have; set the field, or max_tokens of ` +
          `the entry of "${route.id}"`,
        field
      )
    }
    if (!sendsLimit(driver, target, limited)) {
      return invalidRequest(
        `model: a strict limit or budget applies, and the upstream of "${route.id}" takes no limit of output`,
        "model"
      )
    }
    const completionTokens = mostOutput(input, limited, driver)
    const fault = outputFault(outputs, completionTokens / conversation.choices, conversation.choices)
    if (fault !== undefined) return fault
    const tools = driver.contract === undefined ? [] : contracts[driver.contract].facts.callBounds(conversation)
    if (tools instanceof GatewayError) return tools
    const { toolChoice } = conversation
    // A reply without the demanded call is asked for again.
    const isRepeated = asksTwice(conversation, driver.contract)
    bounds.push({
      target,
      most: {
        promptTokens: withMargin(promptTokens + (isRepeated ? estimateTokens(reminder(toolChoice)) : 0)),
        completionTokens,
        tools,
        tier,
        words,
        pieces
      },
      tries: replies * (isRepeated ? 2 : 1)
    })
  }
  return bounds
}
