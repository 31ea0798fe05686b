/**
 * The webhooks of the configuration.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Schema from "effect/Schema"
import { type GatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import { ConfigStore, type Saved, type UpdateError, type UpdateOptions } from "../ConfigStore.ts"
import { keepHidden } from "../hidden.ts"
import { isJsonObject, type RawConfig } from "../json.ts"
import { setField } from "../rawConfig.ts"
import { webhooksOf } from "../webhooks.ts"

/** Entries in the place of those before, of which `***` keeps what is there. */
const keepSecrets = (raw: RawConfig, entries: ReadonlyArray<Schema.Json>): ReadonlyArray<Schema.Json> => {
  const before = new Map(webhooksOf(raw).map((entry) => [entry["name"], entry]))
  return entries.map((entry) => {
    const known = isJsonObject(entry) ? before.get(entry["name"]) : undefined
    return isJsonObject(entry) && known !== undefined ? keepHidden(known, entry) : entry
  })
}

export class Webhooks extends Context.Service<Webhooks, {
  /**
   * Replaces all webhooks, which have the form of `webhooks` in the file. `***` in the place of a secret or of a header's value keeps that
   * of the webhook of the same name. Fails with a `ConfigInvalid` for a wrong webhook, and otherwise as `ConfigStore.update` does.
   */
  readonly set: (
    webhooks: Schema.Json | undefined,
    options?: UpdateOptions
  ) => Effect.Effect<Saved, UpdateError | GatewayError>
}>()("model-gateway/config/Webhooks") {
  static readonly layer: Layer.Layer<Webhooks, never, ConfigStore> = Layer.effect(
    Webhooks,
    Effect.map(ConfigStore, (store) => ({
      set: Effect.fnUntraced(function*(webhooks, options) {
        if (webhooks === undefined) return yield* invalidRequest("webhooks is required", "webhooks")
        const isEmpty = Array.isArray(webhooks) && webhooks.length === 0
        return yield* store.update((raw) => {
          const next = Array.isArray(webhooks) ? keepSecrets(raw, webhooks) : webhooks
          return Effect.succeed(setField(raw, ["webhooks"], isEmpty ? undefined : next))
        }, options)
      })
    }))
  )
}
