/**
 * The configuration that the service would start with, read without changing anything.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { ConfigInvalid } from "../../config/ConfigError.ts"
import { ConfigFileError, maxFaults } from "../../config/ConfigError.ts"
import { makeConfigFile } from "../../config/ConfigFile.ts"
import { Environment } from "../../config/Environment.ts"
import { loadConfig } from "../../config/sources.ts"
import { storeUrlOf } from "../../config/storeSettings.ts"

/** The configuration has faults; one line each, with its place. */
export class FaultyConfig extends Schema.TaggedError<FaultyConfig>()("FaultyConfig", { message: Schema.String }) {}

const faulty = (source: string, { faults }: ConfigInvalid): FaultyConfig => {
  const lines = faults.map((fault) => `${source}: ${fault.message}`)
  if (faults.length === maxFaults) lines.push(`${source}: these are the first ${maxFaults} faults; there may be more`)
  return new FaultyConfig({ message: lines.join("\n") })
}

/** Reads the file at `path`, or without one what the environment names. `source` is the file's or the variable's name. */
export const readConfig = Effect.fnUntraced(function*(path: Option.Option<string>) {
  const environment = yield* Environment
  const file = yield* makeConfigFile(Option.getOrElse(path, () => environment.configPath))
  const named = Option.isSome(path)
  if (named && Option.isNone(yield* file.read)) {
    return yield* new ConfigFileError({ message: `${file.path}: there is no such file` })
  }
  const supplied = named ? undefined : environment.configJson
  const source = supplied === undefined ? file.path : "GATEWAY_CONFIG_JSON"
  const { snapshot, version, warnings } = yield* loadConfig(
    { ...environment, configJson: supplied, configWriteback: false },
    file
  ).pipe(
    Effect.tap(({ snapshot }) => storeUrlOf(snapshot.raw, source)),
    Effect.catchTag("ConfigInvalid", (error) => Effect.fail(faulty(source, error)))
  )
  return { source, config: snapshot.config, warnings, exists: supplied !== undefined || Option.isSome(version) }
})
