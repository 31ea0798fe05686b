/**
 * The error that no model goes by a name.
 */
import { type GatewayError, gatewayError } from "./GatewayError.ts"
import { type ModelTable, nativeModels } from "./models.ts"
import { nearest } from "./nearest.ts"

/** Names that are suggested for one that is not there. */
const mostSuggested = 3

/** No model matches the requested name; those of the table that are nearest to it are named. */
export const modelNotFound = (requested: string, { aliases, models }: ModelTable, param = "model"): GatewayError => {
  const names = [...nativeModels, ...models].map(({ id }) => id)
  const near = nearest(requested.trim(), [...names, ...aliases.keys()], mostSuggested).map((name) => `"${name}"`)
  const suggestion = near.length === 0 ? "" : `; did you mean ${near.join(" or ")}?`
  return gatewayError("model_not_found", `The model "${requested.slice(0, 200)}" does not exist${suggestion}`, {
    param
  })
}
