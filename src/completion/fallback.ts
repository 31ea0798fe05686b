/**
 * What of the fallback of a key's limit can carry a request: the targets whose models read its parts, whose windows hold its prompt and, where the route
 * requires it, which bind its strict schema. A fallback that carries it nowhere leaves it to the limit's refusal.
 */
import { catalogueOf } from "../domain/catalogue.ts"
import { exceeds, outputOf, reads } from "../domain/fits.ts"
import type { Route } from "../domain/routes.ts"
import type { ServedInput } from "./CompletionInput.ts"
import { strictSchemaOf } from "./strictSchemas.ts"

/** The model with the targets that can carry a request of so many estimated tokens; `undefined` without one. */
export const carrying = (input: ServedInput, model: Route, promptTokens: number): Route | undefined => {
  const { config, conversation } = input
  const catalogue = catalogueOf(config)
  const schema = model.options.schemas === "required" ? strictSchemaOf({ ...input, model }) : undefined
  const targets = model.targets.filter((target) => {
    const { context_window: window, input: read } = catalogue.ofTarget(target)
    return (read === undefined || reads({ input: read.value }, conversation)) &&
      (schema === undefined || schema.isBoundBy(target)) &&
      !exceeds(window?.value, promptTokens, outputOf(conversation))
  })
  return targets.length === 0 ? undefined : targets.length === model.targets.length ? model : { ...model, targets }
}
