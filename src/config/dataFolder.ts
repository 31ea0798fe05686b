/**
 * The folder for what the gateway itself keeps.
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import { ConfigStore } from "./ConfigStore.ts"
import { Environment } from "./Environment.ts"

/**
 * `GATEWAY_DATA_DIR`; where it is not set, `data` beside the configuration file, if that is there. `undefined` for a
 * configuration that is from the environment alone, or that there is none of. The folder need not exist.
 */
export const dataFolder: Effect.Effect<
  string | undefined,
  never,
  ConfigStore | Environment | FileSystem.FileSystem | Path.Path
> = Effect.gen(function*() {
  const { dataDir } = yield* Environment
  const { resolve, dirname, join } = yield* Path.Path
  if (dataDir !== undefined) return resolve(dataDir)
  const { config_path, env_backed } = (yield* ConfigStore).source
  const fs = yield* FileSystem.FileSystem
  const isThere = !env_backed && (yield* Effect.orElseSucceed(fs.exists(config_path), () => false))
  return isThere ? join(dirname(resolve(config_path)), "data") : undefined
})
