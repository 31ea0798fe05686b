/**
 * The folder for what the gateway itself keeps.
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import type * as Path from "effect/Path"
import { ConfigStore } from "./ConfigStore.ts"
import { Environment, namedFolder } from "./Environment.ts"

/**
 * `GATEWAY_DATA_DIR`; where it is not set, `data` beside the configuration file, if that is there. `undefined` for a
 * configuration that is from the environment alone, or that there is none of. The folder need not exist.
 */
export const dataFolder: Effect.Effect<
  string | undefined,
  never,
  ConfigStore | Environment | FileSystem.FileSystem | Path.Path
> = Effect.gen(function*() {
  const folder = yield* namedFolder
  if ((yield* Environment).dataDir !== undefined) return folder
  const { config_path, env_backed } = (yield* ConfigStore).source
  const fs = yield* FileSystem.FileSystem
  const isThere = !env_backed && (yield* Effect.orElseSucceed(fs.exists(config_path), () => false))
  return isThere ? folder : undefined
})
