/**
 * The configuration on its way from and to other places: imports, backups, and the hashes by which two of them compare.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { ConfigInvalid } from "./ConfigError.ts"
import { configHashOf } from "./configHash.ts"
import { ConfigStore, type Saved, type UpdateError, type UpdateOptions } from "./ConfigStore.ts"
import { shownCredential } from "./hidden.ts"
import { applyImport, type ImportMode } from "./importConfig.ts"
import { forEachCooperatively, isJsonObject, type RawConfig, stringifyConfig } from "./json.ts"
import { accountsOf, withoutOwnFields } from "./rawConfig.ts"

/** An import that took effect, with the numbers of added or changed keys and accounts. */
export interface Imported extends Saved {
  readonly imported_keys: number
  readonly imported_accounts: number
  readonly warnings: ReadonlyArray<string>
}

/**
 * A backup of the configuration. It includes passwords and configured tokens, but neither the secrets of credentials nor the state of the
 * host sync.
 */
export interface Exported {
  readonly config: RawConfig
  readonly json: string
  readonly base64: string
}

export class ConfigTransfer extends Context.Service<ConfigTransfer, {
  /** Imports the importable parts of any JSON object (spec "Import"), all or nothing. */
  readonly importConfig: (
    incoming: unknown,
    mode: ImportMode,
    options?: UpdateOptions
  ) => Effect.Effect<Imported, UpdateError>
  readonly exportConfig: Effect.Effect<Exported>
  /** SHA-256 of the canonical configuration in effect, without instance state (`withoutOwnFields`). */
  readonly configHash: Effect.Effect<string>
  /** Like `configHash`, for another configuration. */
  readonly hashOf: (raw: RawConfig) => Effect.Effect<string>
}>()("model-gateway/config/ConfigTransfer") {
  static readonly layer: Layer.Layer<ConfigTransfer, never, ConfigStore> = Layer.effect(
    ConfigTransfer,
    Effect.map(ConfigStore, (store) => ({
      importConfig: Effect.fn("ConfigTransfer.importConfig")(function*(incoming, mode, options) {
        if (!isJsonObject(incoming)) {
          return yield* ConfigInvalid.of([{ field: "", message: "the configuration must be a JSON object" }])
        }
        const now = Math.floor((yield* Clock.currentTimeMillis) / 1000)
        const counts = { imported_keys: 0, imported_accounts: 0 }
        let warnings: ReadonlyArray<string> = []
        const result = yield* store.update(
          Effect.fnUntraced(function*(raw, config) {
            const applied = yield* applyImport({ raw, config }, incoming, mode, now)
            counts.imported_keys = applied.imported_keys
            counts.imported_accounts = applied.imported_accounts
            warnings = applied.warnings
            return applied.raw
          }),
          options
        )
        return { ...result, ...counts, warnings }
      }),
      exportConfig: Effect.gen(function*() {
        const raw = withoutOwnFields(yield* store.currentRaw)
        const accounts: Array<RawConfig> = []
        yield* forEachCooperatively(accountsOf(raw), (entry) => {
          const { credential } = entry
          accounts.push(credential === undefined ? entry : { ...entry, credential: shownCredential(credential) })
        })
        const config = accounts.length === 0 ? raw : { ...raw, accounts }
        const json = yield* stringifyConfig(config, "compact")
        return { config, json, base64: Buffer.from(json).toString("base64") }
      }),
      configHash: Effect.flatMap(store.currentRaw, configHashOf),
      hashOf: configHashOf
    }))
  )
}
