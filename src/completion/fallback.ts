/**
 * What of the fallback of a key's limit can carry a request: the targets whose models read its parts and whose windows hold its prompt. A
 * fallback that carries it nowhere leaves it to the limit's refusal.
 */
import type { GatewayConfig } from "../config/GatewayConfig.ts"
import { catalogueOf } from "../domain/catalogue.ts"
import type { Conversation } from "../domain/Conversation.ts"
import { exceeds, outputOf, reads } from "../domain/fits.ts"
import type { Route } from "../domain/routes.ts"

/** The model with the targets that can carry a conversation of so many estimated tokens; `undefined` without one. */
export const carrying = (
  config: GatewayConfig,
  model: Route,
  conversation: Conversation,
  promptTokens: number
): Route | undefined => {
  const catalogue = catalogueOf(config)
  const targets = model.targets.filter((target) => {
    const { context_window: window, input } = catalogue.ofTarget(target)
    return (input === undefined || reads({ input: input.value }, conversation)) &&
      !exceeds(window?.value, promptTokens, outputOf(conversation))
  })
  return targets.length === 0 ? undefined : targets.length === model.targets.length ? model : { ...model, targets }
}
