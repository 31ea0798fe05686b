/**
 * Maps of the configuration that are changed as a whole.
 */
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import { invalidRequest } from "../../domain/GatewayError.ts"
import type { ConfigStore, UpdateOptions } from "../ConfigStore.ts"
import { isJsonObject } from "../json.ts"
import { setField } from "../rawConfig.ts"

/** Replaces a map of the configuration. Settings beside its entries stay. An empty one leaves the file; an absent one is refused. */
export const replaceMap = Effect.fnUntraced(function*(
  store: ConfigStore["Service"],
  name: "prices" | "routes",
  map: Schema.Json | undefined,
  options: UpdateOptions | undefined
) {
  if (map === undefined) return yield* invalidRequest(`${name} is required`, name)
  return yield* store.update((raw) => {
    const settings = Object.entries(isJsonObject(raw[name]) ? raw[name] : {}).filter(([, value]) =>
      typeof value === "boolean"
    )
    const value = isJsonObject(map) ? { ...Object.fromEntries(settings), ...map } : map
    const isEmpty = isJsonObject(value) && Object.keys(value).length === 0
    return Effect.succeed(setField(raw, [name], isEmpty ? undefined : value))
  }, options)
})
