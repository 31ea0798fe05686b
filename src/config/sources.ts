/**
 * Loads the configuration at the start: from the file, or from the environment variable that replaces it.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { environmentAdvice } from "./advice.ts"
import { type ConfigFileError, ConfigInvalid } from "./ConfigError.ts"
import type { ConfigFile, FileVersion } from "./ConfigFile.ts"
import { decodeConfig, type DecodedConfig } from "./decodeConfig.ts"
import type { Environment } from "./Environment.ts"
import { parseConfig, type RawConfig, stringifyConfig } from "./json.ts"

const variable = "GATEWAY_CONFIG_JSON"

/** Parses `GATEWAY_CONFIG_JSON`: a JSON object, or the Base64 of one in either alphabet, padded or not, wrapped or not. */
export const parseVariable = (text: string): Effect.Effect<RawConfig, ConfigInvalid> => {
  const trimmed = text.trim()
  if (trimmed.startsWith("{")) return parseConfig(variable, trimmed)
  const decoded = /^[\w+/\s-]+={0,2}$/.test(trimmed) ? Buffer.from(trimmed, "base64").toString("utf8").trim() : ""
  return decoded.startsWith("{")
    ? parseConfig(variable, decoded)
    : Effect.fail(ConfigInvalid.of([{ field: "", message: "must be a JSON object or the Base64 of one" }], variable))
}

interface FromSource extends DecodedConfig {
  /** The version of the file, if the configuration is from a file. */
  readonly version: Option.Option<FileVersion>
  /** True if the environment is the source, so that changes stay in memory. */
  readonly envBacked: boolean
}

export interface Loaded extends FromSource {
  /** Advice on the environment's variables. */
  readonly advice: ReadonlyArray<string>
}

/**
 * Loads the configuration. Without `GATEWAY_CONFIG_JSON`, reads the file; a missing file is an empty configuration. With
 * the variable, the file is used only if write-back is on: a valid file wins, and a missing one is written.
 */
const load = Effect.fnUntraced(function*(
  environment: Environment["Service"],
  file: ConfigFile
): Effect.fn.Return<FromSource, ConfigInvalid | ConfigFileError> {
  const supplied = environment.configJson
  const decode = (source: string, raw: RawConfig) => decodeConfig(raw, { source, duplicates: "keep-first" })

  const fromFile = Effect.gen(function*() {
    const content = yield* file.read
    if (Option.isNone(content)) return Option.none<FromSource>()
    const decoded = yield* decode(file.path, yield* parseConfig(file.path, content.value.text))
    return Option.some<FromSource>({ ...decoded, version: content, envBacked: false })
  })

  if (supplied === undefined) {
    const found = yield* fromFile
    return Option.isSome(found)
      ? found.value
      : { ...(yield* decode(file.path, {})), version: Option.none(), envBacked: false }
  }

  const fromVariable = Effect.flatMap(parseVariable(Redacted.value(supplied)), (raw) => decode(variable, raw))
  if (!environment.configWriteback) return { ...(yield* fromVariable), version: Option.none(), envBacked: true }

  const found = yield* fromFile.pipe(
    Effect.catchTag(
      "ConfigInvalid",
      (error) => Effect.as(Effect.logWarning(`${error.message}; ${variable} is used instead`), "invalid" as const)
    )
  )
  if (found !== "invalid" && Option.isSome(found)) return found.value
  const clear = found === "invalid" ? file.setAside : Effect.void
  const decoded = yield* fromVariable
  const text = yield* stringifyConfig(decoded.snapshot.raw, "indented")
  return yield* Effect.andThen(clear, file.replace(text)).pipe(
    Effect.map((version): FromSource => ({ ...decoded, version: Option.some(version), envBacked: false })),
    Effect.catchTag(
      "ConfigFileError",
      (error) =>
        Effect.logWarning(`${error.message}; changes stay in memory`).pipe(
          Effect.as<FromSource>({ ...decoded, version: Option.none(), envBacked: true })
        )
    )
  )
})

/** Loads the configuration of the start (`load`), with advice on the variables that name it. */
export const loadConfig = (
  environment: Environment["Service"],
  file: ConfigFile
): Effect.Effect<Loaded, ConfigInvalid | ConfigFileError> =>
  Effect.map(load(environment, file), (loaded) => ({
    ...loaded,
    advice: environmentAdvice(environment, loaded.version)
  }))
