/**
 * Environment variables of the gateway. A blank variable counts as unset. An invalid one ends the start with a line that
 * names it.
 */
import * as Arr from "effect/Array"
import * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as LogLevel from "effect/LogLevel"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { availableParallelism } from "node:os"
import { namesVariable, parseReferenceNames, referencesVariable } from "./referenceNames.ts"
import { parseSecretFolders, secretFoldersVariable } from "./secretFolders.ts"

/** One or more variables are invalid. One line each, without the values. */
export class EnvironmentInvalid extends Schema.TaggedError<EnvironmentInvalid>()("EnvironmentInvalid", {
  message: Schema.String
}) {}

/** Address and credentials of the hosting platform's API. */
export interface HostEnvironment {
  readonly token: Redacted.Redacted<string> | undefined
  readonly projectId: string | undefined
  readonly teamId: string | undefined
  readonly apiUrl: string | undefined
}

export interface EnvironmentShape {
  /** `PORT`; the system chooses a port for 0. */
  readonly port: number
  /** `HOST`, the address to listen on. */
  readonly host: string
  /** `GATEWAY_CONFIG_PATH`. */
  readonly configPath: string
  /** Whether `GATEWAY_CONFIG_PATH` is set. */
  readonly configPathNamed: boolean
  /** `GATEWAY_DATA_DIR`, the folder for the gateway's own data. */
  readonly dataDir: string | undefined
  /** `GATEWAY_CONFIG_JSON`, unparsed. */
  readonly configJson: Redacted.Redacted<string> | undefined
  /** `GATEWAY_CONFIG_WRITEBACK`. */
  readonly configWriteback: boolean
  /** `GATEWAY_LOCKED`: whether operators may not change the configuration. */
  readonly locked: boolean
  /** `GATEWAY_ADMIN_KEY`. */
  readonly adminKey: Redacted.Redacted<string> | undefined
  /** `GATEWAY_ADMIN_KEY_PREVIOUS`: the previous admin key, the base of `GATEWAY_STORE_KEY_PREVIOUS=derived`. */
  readonly adminKeyPrevious: Redacted.Redacted<string> | undefined
  /** `GATEWAY_STORE_URL`, `GATEWAY_STORE_KEY`, `GATEWAY_STORE_KEY_PREVIOUS`: the store that several nodes share. */
  readonly storeUrl: Redacted.Redacted<string> | undefined
  readonly storeKey: Redacted.Redacted<string> | undefined
  readonly storeKeyPrevious: Redacted.Redacted<string> | undefined
  /** `GATEWAY_STORE_TIMEOUT_MS`: timeout of a store command. */
  readonly storeTimeoutMillis: number | undefined
  /** `GATEWAY_NODE_ID`. */
  readonly nodeId: string | undefined
  /** `GATEWAY_WORKERS`: number of processes that serve; `auto` is the number of cores. */
  readonly workers: number
  /** `GATEWAY_LOG_LEVEL`. */
  readonly logLevel: LogLevel.LogLevel
  /** `HOST_TOKEN`, `HOST_PROJECT_ID`, `HOST_TEAM_ID`, `HOST_API_URL`. */
  readonly hosting: HostEnvironment
  /** `GATEWAY_RELEASES_URL`, the address of a GitHub-style latest-release document. */
  readonly releasesUrl: string | undefined
  /** `GATEWAY_REFERENCES`: the variables that references of the configuration may name. */
  readonly references: ReadonlyArray<string>
  /** `GATEWAY_SECRET_DIRS`: the folders whose files references of the configuration may name. */
  readonly secretFolders: ReadonlyArray<string>
}

/** A variable of the environment as trimmed text; empty if unset or unreadable. */
export const textVariable = (name: string): Effect.Effect<string> =>
  Config.String(name).pipe(
    Config.withDefault(""),
    Effect.orElseSucceed(() => ""),
    Effect.map((value) => value.trim())
  )

type Read<A> = Effect.Effect<Result.Result<A, string>>

const logLevels: ReadonlyMap<string, LogLevel.LogLevel> = new Map([
  ["all", "All"],
  ["trace", "Trace"],
  ["debug", "Debug"],
  ["info", "Info"],
  ["warn", "Warn"],
  ["warning", "Warn"],
  ["error", "Error"],
  ["fatal", "Fatal"],
  ["none", "None"]
])

const booleans: ReadonlyMap<string, boolean> = new Map([
  ...["1", "true", "yes", "on"].map((word) => [word, true] as const),
  ...["0", "false", "no", "off"].map((word) => [word, false] as const)
])

/** Reads one variable. `parse` returns `undefined` for a text that breaks `rule`. */
const variable = <A, B>(name: string, absent: B, rule: string, parse: (text: string) => A | undefined): Read<A | B> =>
  Config.option(Config.String(name)).pipe(
    Effect.map((value): Result.Result<A | B, string> => {
      const text = Option.getOrElse(value, () => "").trim()
      if (text === "") return Result.succeed(absent)
      const parsed = parse(text)
      return parsed === undefined ? Result.fail(`${name} ${rule}`) : Result.succeed(parsed)
    }),
    Effect.catch(() => Effect.succeed(Result.fail(`${name} cannot be read`)))
  )

const string = <B>(name: string, absent: B) => variable(name, absent, "must be a text", (text) => text)

/** A secret. What fills the environment has not replaced a reference that is left in it. */
const secret = (name: string) =>
  variable(
    name,
    undefined,
    "must be the secret itself: it has a reference to another variable, which is not replaced",
    (text) => namesVariable(text) ? undefined : Redacted.make(text)
  )

const address = (name: string) =>
  variable(
    name,
    undefined,
    "must be an http or https address",
    (text) => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol) ? text.replace(/\/+$/, "") : undefined
  )

const port = (text: string): number | undefined => {
  const value = Number(text)
  return /^\d+$/.test(text) && value <= 65_535 ? value : undefined
}

const mostWorkers = 256

const workers = (text: string): number | undefined => {
  if (text.toLowerCase() === "auto") return Math.min(mostWorkers, availableParallelism())
  const value = Number(text)
  return /^\d+$/.test(text) && value >= 1 && value <= mostWorkers ? value : undefined
}

/** The variables of the current `ConfigProvider`, by default those of the process. */
export class Environment extends Context.Service<Environment, EnvironmentShape>()(
  "model-gateway/config/Environment"
) {
  static readonly make: Effect.Effect<EnvironmentShape, EnvironmentInvalid> = Effect.gen(function*() {
    const read = yield* Effect.all({
      port: variable("PORT", 5001, "must be a port number between 0 and 65535", port),
      host: string("HOST", "127.0.0.1"),
      configPath: string("GATEWAY_CONFIG_PATH", "config.json"),
      configPathNamed: variable("GATEWAY_CONFIG_PATH", false, "must be a text", () => true),
      dataDir: string("GATEWAY_DATA_DIR", undefined),
      configJson: variable("GATEWAY_CONFIG_JSON", undefined, "must be a text", (text) => Redacted.make(text)),
      configWriteback: variable(
        "GATEWAY_CONFIG_WRITEBACK",
        false,
        "must be true or false",
        (text) => booleans.get(text.toLowerCase())
      ),
      locked: variable(
        "GATEWAY_LOCKED",
        false,
        "must be true or false",
        (text) => booleans.get(text.toLowerCase())
      ),
      adminKey: secret("GATEWAY_ADMIN_KEY"),
      adminKeyPrevious: secret("GATEWAY_ADMIN_KEY_PREVIOUS"),
      storeUrl: secret("GATEWAY_STORE_URL"),
      storeKey: secret("GATEWAY_STORE_KEY"),
      storeKeyPrevious: secret("GATEWAY_STORE_KEY_PREVIOUS"),
      storeTimeoutMillis: variable(
        "GATEWAY_STORE_TIMEOUT_MS",
        undefined,
        "must be a whole number of milliseconds",
        (text) => /^\d{1,6}$/.test(text) ? Number(text) : undefined
      ),
      nodeId: variable(
        "GATEWAY_NODE_ID",
        undefined,
        "must be 1 to 64 of A-Z, a-z, 0-9, dot, _ and -",
        (text) => /^[A-Za-z0-9._-]{1,64}$/.test(text) ? text : undefined
      ),
      workers: variable("GATEWAY_WORKERS", 1, "must be a number between 1 and 256, or auto", workers),
      logLevel: variable(
        "GATEWAY_LOG_LEVEL",
        "Info" as const,
        "must be one of all, trace, debug, info, warn, error, fatal, none",
        (text) => logLevels.get(text.toLowerCase())
      ),
      hostToken: secret("HOST_TOKEN"),
      hostProjectId: string("HOST_PROJECT_ID", undefined),
      hostTeamId: string("HOST_TEAM_ID", undefined),
      hostApiUrl: address("HOST_API_URL"),
      releasesUrl: address("GATEWAY_RELEASES_URL"),
      references: variable(
        referencesVariable,
        [],
        "must be names of variables, or beginnings of names before *, with commas between",
        parseReferenceNames
      ),
      secretFolders: variable(
        secretFoldersVariable,
        [],
        "must be absolute paths of folders, with commas between",
        parseSecretFolders
      )
    })
    const checked = Result.all(read)
    if (Result.isFailure(checked)) {
      const results: ReadonlyArray<Result.Result<unknown, string>> = Object.values(read)
      return yield* new EnvironmentInvalid({ message: Arr.getFailures(results).join("\n") })
    }
    const { hostApiUrl, hostProjectId, hostTeamId, hostToken, ...rest } = checked.success
    return {
      ...rest,
      hosting: { token: hostToken, projectId: hostProjectId, teamId: hostTeamId, apiUrl: hostApiUrl }
    }
  })

  static readonly layer: Layer.Layer<Environment, EnvironmentInvalid> = Layer.effect(Environment, Environment.make)
}

/** `GATEWAY_DATA_DIR`, by default `data` beside the configuration file. Neither need exist. */
export const namedFolder = Effect.map(
  Effect.all([Environment, Path.Path]),
  ([{ configPath, dataDir }, { dirname, join, resolve }]) =>
    dataDir === undefined ? join(dirname(resolve(configPath)), "data") : resolve(dataDir)
)
