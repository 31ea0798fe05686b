/** What several commands of the command line share: their errors, arguments and output. */
import * as Argument from "effect/cli/Argument"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { PlatformError } from "effect/PlatformError"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import { ConfigFileError, type ConfigInvalid, maxFaults } from "../../config/ConfigError.ts"
import { codeOf, makeConfigFile } from "../../config/ConfigFile.ts"
import { Environment } from "../../config/Environment.ts"
import { loadConfig } from "../../config/sources.ts"
import { storeUrlOf } from "../../config/storeSettings.ts"

export class CommandFailed extends Schema.TaggedError<CommandFailed>()("CommandFailed", { message: Schema.String }) {}

/** Of `| head`, for example: the reader has all that it wants, so the command succeeds. */
const isBrokenPipe = (error: unknown): boolean =>
  Predicate.isTagged(error, "PlatformError") && codeOf(error as PlatformError) === "EPIPE"

/** Writes bytes or text to the standard output as they arrive. */
export const print = <E, R>(
  output: Stream.Stream<string | Uint8Array, E, R>
): Effect.Effect<void, E | PlatformError, R | Stdio.Stdio> =>
  Effect.flatMap(Stdio.Stdio, (stdio) => Stream.run(output, stdio.stdout({ endOnDone: false }))).pipe(
    Effect.catchIf(isBrokenPipe, () => Effect.void)
  )

/** One line for each fault, with its place. */
export const faulty = (source: string, { faults, unknown }: ConfigInvalid): CommandFailed => {
  const lines = [...faults.map((fault) => fault.message), ...unknown].map((message) => `${source}: ${message}`)
  if (faults.length === maxFaults) lines.push(`${source}: these are the first ${maxFaults} faults; there may be more`)
  return new CommandFailed({ message: lines.join("\n") })
}

/**
 * Reads the configuration that the service would start with: the file at `path`, by default the one that the environment names.
 * `source` is the name of the file or the variable. Changes nothing.
 */
export const readConfig = Effect.fnUntraced(function*(path: Option.Option<string>) {
  const environment = yield* Environment
  const file = yield* makeConfigFile(Option.getOrElse(path, () => environment.configPath))
  const named = Option.isSome(path)
  if (named && Option.isNone(yield* file.read)) {
    return yield* new ConfigFileError({ message: `${file.path}: there is no such file` })
  }
  const supplied = named ? undefined : environment.configJson
  const source = supplied === undefined ? file.path : "GATEWAY_CONFIG_JSON"
  const { advice, snapshot, version, warnings } = yield* loadConfig(
    { ...environment, configJson: supplied, configWriteback: false },
    file
  ).pipe(
    Effect.tap(({ snapshot }) => storeUrlOf(snapshot.raw, source)),
    Effect.catchTag("ConfigInvalid", (error) => Effect.fail(faulty(source, error)))
  )
  return {
    source,
    config: snapshot.config,
    raw: snapshot.raw,
    warnings: [...warnings.map((warning) => `${source}: ${warning}`), ...named ? [] : advice],
    exists: supplied !== undefined || Option.isSome(version)
  }
})

export const count = (n: number, noun: string): string => `${n} ${noun}${n === 1 ? "" : "s"}`

/** The configuration file that a command reads. */
export const configArgument = Argument.Path("path").pipe(
  Argument.withDescription(
    "Configuration file (default: $GATEWAY_CONFIG_JSON, then $GATEWAY_CONFIG_PATH, then config.json)"
  ),
  Argument.optional
)

/** The path of the configuration file that a command changes. Fails where the configuration is no file. */
export const writtenConfig = Effect.flatMap(
  Environment,
  ({ configJson, configPath, configWriteback }) =>
    configJson === undefined || configWriteback
      ? Effect.succeed(configPath)
      : Effect.fail(new CommandFailed({ message: "The configuration is in GATEWAY_CONFIG_JSON, not in a file" }))
)

/** Bytes of a file of prices or facts. Those that are published have two million. */
export const longestPriceFile = 64 * 1024 * 1024
