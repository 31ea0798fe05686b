/**
 * Where the configuration comes from, whether its changes last there, and whether operators may make any.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import type * as Path from "effect/Path"
import { ConfigLocked } from "./ConfigError.ts"
import { Environment, namedFolder } from "./Environment.ts"
import type { GatewayConfig } from "./GatewayConfig.ts"

/** Where the configuration comes from, with the field names of the admin API. */
export interface ConfigSource {
  /** True if the environment is the source, so that changes stay in memory. */
  readonly env_backed: boolean
  readonly env_source_present: boolean
  readonly env_writeback_enabled: boolean
  /** `GATEWAY_LOCKED`. */
  readonly env_locked: boolean
  readonly config_path: string
}

/** A configuration of an embedder. */
export const inMemory: ConfigSource = {
  env_backed: false,
  env_source_present: false,
  env_writeback_enabled: false,
  env_locked: false,
  config_path: ""
}

/** Makes the refusal of an operator's change; `undefined` while the configuration is open. */
export const makeLock =
  ({ config_path, env_backed, env_locked }: ConfigSource) => ({ admin }: GatewayConfig): ConfigLocked | undefined => {
    if (!env_locked && !admin.locked) return undefined
    const by = env_locked ? "GATEWAY_LOCKED" : "admin.locked"
    const place = env_backed ? "GATEWAY_CONFIG_JSON" : config_path === "" ? "the app" : config_path
    return new ConfigLocked({
      message: `the configuration is locked (${by}): change it in ${place}, not by the admin API`
    })
  }

export class ConfigOrigin extends Context.Service<ConfigOrigin, {
  readonly source: ConfigSource
  /** Advice on the environment's variables, as of the start. */
  readonly advice: ReadonlyArray<string>
  /** Whether changes survive a restart, judging by the last save. */
  readonly configWritable: Effect.Effect<boolean>
  /** Whether operators may not change the configuration here. */
  readonly locked: Effect.Effect<boolean>
  /** Whether only a sync to the hosting platform would preserve the changes. */
  readonly needsHostSync: Effect.Effect<boolean>
}>()("model-gateway/config/ConfigOrigin") {}

/**
 * The folder for the gateway's own data: `GATEWAY_DATA_DIR`, by default `data` beside an existing configuration file.
 * `undefined` without either. The folder need not exist.
 */
export const dataFolder: Effect.Effect<
  string | undefined,
  never,
  ConfigOrigin | Environment | FileSystem.FileSystem | Path.Path
> = Effect.gen(function*() {
  const folder = yield* namedFolder
  if ((yield* Environment).dataDir !== undefined) return folder
  const { config_path, env_backed } = (yield* ConfigOrigin).source
  const fs = yield* FileSystem.FileSystem
  const isThere = !env_backed && (yield* Effect.orElseSucceed(fs.exists(config_path), () => false))
  return isThere ? folder : undefined
})
