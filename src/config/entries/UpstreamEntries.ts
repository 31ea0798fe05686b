/**
 * The upstreams of the configuration, each an entry of `upstreams` or the group `upstream`: adding, changing and removing them.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Result from "effect/Result"
import type { GatewayError } from "../../domain/GatewayError.ts"
import { ConfigInvalid } from "../ConfigError.ts"
import { ConfigStore, type Saved, type UpdateError, type UpdateOptions } from "../ConfigStore.ts"
import type { GatewayConfig, UpstreamConfig } from "../GatewayConfig.ts"
import { withoutSecrets } from "../hidden.ts"
import type { RawConfig } from "../json.ts"
import {
  addUpstream,
  changeUpstream,
  draftName,
  type Naming,
  removeUpstream,
  unknownUpstream
} from "./upstreamEdits.ts"

/** A configuration without an upstream, and what named it and went along. */
export interface UpstreamRemoved extends Saved {
  readonly removed: Naming
}

type Edit = (raw: RawConfig, config: GatewayConfig) => Result.Result<RawConfig, GatewayError>

/** Where the faults of a draft are: it has no place in the file. */
const draftPlace = "upstream"

/** The faults of the entry `place`, as those of a draft. */
const placedInDraft = <E>(place: string, error: E): E | ConfigInvalid => {
  if (!(error instanceof ConfigInvalid)) return error
  const placed = (text: string) => text.startsWith(place) ? `${draftPlace}${text.slice(place.length)}` : text
  return ConfigInvalid.of(
    error.faults.map(({ field, message }) => ({ field: placed(field), message: placed(message) }))
  )
}

/**
 * The upstreams of the configuration. Entries have the form of `upstreams` in the file. A change fails with `not_found` for an unknown
 * upstream, with `conflict` or `invalid_request` where its description says so, and otherwise as `ConfigStore.update` does.
 */
export class UpstreamEntries extends Context.Service<UpstreamEntries, {
  /** Adds an upstream with the name in `name`; a configured name is a conflict. */
  readonly add: (entry: RawConfig, options?: UpdateOptions) => Effect.Effect<Saved, UpdateError | GatewayError>
  /** Changes an upstream: an absent field stays, `null` unsets it, and a secret as it is shown stays. The name stays. */
  readonly change: (
    name: string,
    patch: RawConfig,
    options?: UpdateOptions
  ) => Effect.Effect<Saved, UpdateError | GatewayError>
  /** Removes an upstream. Accounts and targets that name it are a conflict; with `force` they go along. */
  readonly remove: (
    name: string,
    options?: UpdateOptions & { readonly force?: boolean | undefined }
  ) => Effect.Effect<UpstreamRemoved, UpdateError | GatewayError>
  /** The upstream that an entry would add. Nothing is saved. Faults name the fields of the entry as `upstream.FIELD`. */
  readonly draft: (entry: RawConfig) => Effect.Effect<UpstreamConfig, UpdateError | GatewayError>
  /** The upstream that a change would leave, like `draft`. `withSecrets`: with what the saved entry hides. */
  readonly draftChange: (
    name: string,
    patch: RawConfig,
    withSecrets: boolean
  ) => Effect.Effect<UpstreamConfig, UpdateError | GatewayError>
}>()("model-gateway/config/UpstreamEntries") {
  static readonly layer: Layer.Layer<UpstreamEntries, never, ConfigStore> = Layer.effect(
    UpstreamEntries,
    Effect.map(ConfigStore, (store) => {
      const edited = (edit: Edit, options: UpdateOptions | undefined) =>
        store.update((raw, config) => Effect.fromResult(edit(raw, config)), options)

      const drafted = Effect.fnUntraced(function*(name: string, edit: Edit) {
        const { config } = yield* Effect.mapError(
          edited(edit, { dryRun: true }),
          (error) => placedInDraft(`upstreams.${name}`, error)
        )
        return config.upstreams.get(name) ?? (yield* unknownUpstream)
      })

      return {
        add: (entry, options) => edited((raw, config) => addUpstream(raw, config, entry), options),
        change: (name, patch, options) => edited((raw, config) => changeUpstream(raw, config, name, patch), options),
        remove: Effect.fnUntraced(function*(name, { force = false, ...options } = {}) {
          let removed: Naming = { accounts: [], targets: [], routes: [] }
          const saved = yield* store.update(
            (raw, config) =>
              Effect.map(removeUpstream(raw, config, name, force), (removal) => {
                removed = removal.named
                return removal.raw
              }),
            options
          )
          return { ...saved, removed }
        }),
        draft: (entry) =>
          Effect.suspend(() => {
            const name = draftName(store.now())
            return drafted(name, (raw, config) => addUpstream(raw, config, { ...entry, name }))
          }),
        draftChange: (name, patch, withSecrets) =>
          drafted(
            name,
            (raw, config) => changeUpstream(raw, config, name, patch, withSecrets ? undefined : withoutSecrets)
          )
      }
    })
  )
}
