/**
 * The commands of the command line. Modules that only some commands need are loaded when these run.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as GlobalFlag from "effect/cli/GlobalFlag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import * as Record from "effect/Record"
import * as Schema from "effect/Schema"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import { buildInfo, currentVersion, runtime } from "../../admin/system/build.ts"
import { codeOf } from "../../config/ConfigFile.ts"
import { configJsonSchema } from "../../config/document.ts"
import { Environment } from "../../config/Environment.ts"
import type { GatewayConfig } from "../../config/GatewayConfig.ts"
import type { JsonSchema, ToolDeclaration } from "../../domain/Conversation.ts"
import { sieveStream } from "../../sieve.ts"
import { playedStyles, usualStyle } from "../../styles/Style.ts"
import type { ReplayRequest } from "../replay.ts"
import { connectCommand, misplacedOption, runAgentCommand } from "./agents/commands.ts"
import { backupCommand, restoreCommand, storeCommand } from "./backupCommands.ts"
import { CommandFailed, configArgument, count, print, readConfig } from "./commandParts.ts"
import { askHealth, healthDefaults, report } from "./health.ts"
import { importCommand } from "./import/command.ts"
import { keysCommand } from "./keyCommands.ts"
import { modelsCommand } from "./modelCommands.ts"
import { pricesCommand } from "./priceCommands.ts"
import { runService } from "./run.ts"

/** The answer to `--version`: the version, its build and its runtime. */
const versionLine = (): string => {
  const { commit, date, form } = buildInfo
  const { node, platform } = runtime
  return `${currentVersion} (commit ${commit ?? "unknown"}, built ${
    date ?? "unknown"
  }, node v${node}, ${platform}, ${form})`
}

const serveFlags = {
  port: Flag.Int("port").pipe(
    Flag.withAlias("p"),
    Flag.withDescription("Port to listen on; 0 picks a free port (default: $PORT or 5001)"),
    Flag.optional
  ),
  host: Flag.String("host").pipe(
    Flag.withDescription("Address to listen on (default: $HOST or 127.0.0.1)"),
    Flag.optional
  ),
  store: Flag.String("store").pipe(
    Flag.withDescription("Redis or Valkey URL that several nodes share (default: $GATEWAY_STORE_URL)"),
    Flag.optional
  ),
  workers: Flag.String("workers").pipe(
    Flag.withAlias("w"),
    Flag.withDescription(
      "Number of processes that serve on the port; auto means one per core (default: $GATEWAY_WORKERS or 1)"
    ),
    Flag.optional
  ),
  config: Flag.Path("config").pipe(
    Flag.withAlias("c"),
    Flag.withDescription(
      "Configuration file (default: $GATEWAY_CONFIG_JSON, then $GATEWAY_CONFIG_PATH, then config.json)"
    ),
    Flag.optional
  )
}

type ServeOptions = Command.Command.Config.Infer<typeof serveFlags>

/** Runs the gateway; each option replaces the environment variable of the same meaning. */
const serveWith = Effect.fnUntraced(function*({ config, host, port, store, workers }: ServeOptions) {
  const level = yield* GlobalFlag.LogLevel
  const variables = Record.getSomes({
    PORT: Option.map(port, String),
    HOST: host,
    GATEWAY_STORE_URL: store,
    GATEWAY_WORKERS: workers,
    GATEWAY_CONFIG_PATH: config,
    // A blank variable counts as unset, so that the file wins over an inherited GATEWAY_CONFIG_JSON.
    GATEWAY_CONFIG_JSON: Option.as(config, ""),
    GATEWAY_LOG_LEVEL: level
  })
  yield* runService(variables)
})

const serveCommand = Command.make("serve", serveFlags, serveWith).pipe(
  Command.withDescription("Run the gateway (the default)")
)

const healthCommand = Command.make(
  "health",
  {
    url: Flag.String("url").pipe(
      Flag.withDescription("Base URL of the gateway (default: from $HOST and $PORT)"),
      Flag.optional
    ),
    live: Flag.Boolean("live").pipe(
      Flag.withDescription("Check liveness (/healthz) instead of readiness (/readyz)"),
      Flag.withDefault(false)
    ),
    timeout: Flag.Finite("timeout").pipe(
      Flag.withDescription("Timeout of one check, in seconds"),
      Flag.withDefault(healthDefaults.timeout)
    ),
    wait: Flag.Finite("wait").pipe(
      Flag.withDescription("Keep retrying for this many seconds"),
      Flag.withDefault(healthDefaults.wait)
    )
  },
  Effect.fnUntraced(function*({ live, timeout, url, wait }) {
    const options = { url: Option.getOrUndefined(url), live, timeout, wait }
    const health = yield* Effect.promise(() => askHealth(options, process.env))
    if (health._tag === "No") return yield* new CommandFailed({ message: health.reason })
    report(health)
  })
).pipe(Command.withDescription("Check that a gateway is ready; prints the reason and exits 1 if not"))

/** Upstreams that the summary names. */
const mostUpstreams = 20

const summary = ({ accounts, configured_keys, ...config }: GatewayConfig): string => {
  const upstreams = [...config.upstreams.values()]
  const named = upstreams.slice(0, mostUpstreams)
    .map(({ driver, enabled, name }) => `${name} (${driver}${enabled ? "" : ", disabled"})`)
  const more = upstreams.length - named.length
  return `${upstreams.length === 1 ? "upstream" : "upstreams"} ${named.join(", ")}${
    more > 0 ? ` and ${more} more` : ""
  }; ${count(accounts.length, "account")}, ${count(configured_keys.length, "key")}`
}

const checkConfigCommand = Command.make(
  "check-config",
  {
    path: configArgument,
    strict: Flag.Boolean("strict").pipe(
      Flag.withDescription("Treat warnings, such as unknown fields, as errors"),
      Flag.withDefault(false)
    ),
    online: Flag.Boolean("online").pipe(
      Flag.withDescription(
        "Also ask each server for its models; warns about servers that do not answer and models they lack, which --strict makes errors"
      ),
      Flag.withDefault(false)
    )
  },
  Effect.fnUntraced(function*({ online, path, strict }) {
    const { config, exists, raw, source, warnings: offline } = yield* readConfig(path)
    const asked = online
      ? (yield* Effect.flatMap(Effect.promise(() => import("./online.ts")), ({ online }) => online(raw))).findings
      : []
    const warnings = [...offline, ...asked]
    for (const warning of warnings) yield* Console.error(warning)
    if (strict && warnings.length > 0) {
      return yield* new CommandFailed({
        message: `${source}: ${count(warnings.length, "warning")}, and --strict is set`
      })
    }
    const found = warnings.length === 0
      ? ""
      : `; ${count(warnings.length, "warning")} above, and --strict would fail`
    yield* Console.log(`${source}: ${exists ? "valid" : "file not found, using defaults"} (${summary(config)})${found}`)
  })
).pipe(
  Command.provide(Environment.layer),
  Command.withDescription("Check a configuration; prints every error with its location, and exits 1 if there are any")
)

const unreadable = (file: string) => (error: PlatformError): CommandFailed => {
  const code = codeOf(error)
  return new CommandFailed({
    message: error.reason._tag === "NotFound"
      ? `${file}: there is no such file`
      : code === "EISDIR"
      ? `${file} is a folder, not a file`
      : `${file} cannot be read (${code})`
  })
}

const webhooksTestCommand = Command.make(
  "test",
  {
    name: Argument.String("name").pipe(
      Argument.withDescription("Webhook to test (default: all)"),
      Argument.optional
    )
  },
  Effect.fnUntraced(function*({ name }) {
    const { config, source } = yield* readConfig(Option.none())
    const { testWebhooks } = yield* Effect.promise(() => import("./webhooks.ts"))
    const { failed, lines } = yield* testWebhooks(config, Option.getOrUndefined(name))
    for (const line of lines) yield* Console.log(line)
    if (lines.length === 0) {
      const which = Option.match(name, { onNone: () => "webhooks", onSome: (name) => `webhook ${name}` })
      return yield* new CommandFailed({ message: `${source} has no ${which}` })
    }
    if (failed > 0) {
      return yield* new CommandFailed({ message: `${failed} of ${count(lines.length, "webhook")} failed` })
    }
  })
).pipe(
  Command.provide(Environment.layer),
  Command.withDescription("Send webhook.test to the configured webhooks; exits 1 if one is not delivered")
)

const webhooksCommand = Command.make("webhooks").pipe(
  Command.withDescription("Webhooks that receive events"),
  Command.withSubcommands([webhooksTestCommand])
)

const configSchemaCommand = Command.make(
  "config-schema",
  {},
  () => Effect.suspend(() => Console.log(JSON.stringify(configJsonSchema(), null, 2)))
).pipe(
  Command.withDescription(
    "Print the JSON Schema of the configuration file; name it in the file's $schema for completion"
  )
)

const Tool = Schema.Struct({
  name: Schema.NonEmptyString,
  description: Schema.optionalKey(Schema.NullOr(Schema.String)),
  parameters: Schema.optionalKey(Schema.NullOr(Schema.Record(Schema.String, Schema.Json))),
  input_schema: Schema.optionalKey(Schema.NullOr(Schema.Record(Schema.String, Schema.Json)))
})

const Tools = Schema.Array(Schema.Union([Schema.Struct({ function: Tool }), Tool]))

/** Tools in the form of any style: a list, or a request with a list. */
const ToolsFile = Schema.Union([Tools, Schema.Struct({ tools: Tools })])

const declaredTools = (file: typeof ToolsFile.Type): ReadonlyArray<ToolDeclaration> =>
  ("tools" in file ? file.tools : file).map((entry) => {
    const { description, input_schema, name, parameters } = "function" in entry ? entry.function : entry
    const schema: JsonSchema | undefined = parameters ?? input_schema ?? undefined
    return { name, description: description ?? undefined, parameters: schema, strict: undefined }
  })

const toolsFlag = Flag.FileSchema("tools", ToolsFile).pipe(
  Flag.withAlias("t"),
  Flag.withDescription("JSON file of the declared tools, in the format of any supported API"),
  Flag.map(declaredTools)
)

const sieveCommand = Command.make(
  "sieve",
  {
    file: Argument.String("file").pipe(Argument.withDescription("Text that a model wrote; - for standard input")),
    tools: toolsFlag.pipe(Flag.optional)
  },
  Effect.fnUntraced(function*({ file, tools }) {
    const fs = yield* FileSystem.FileSystem
    const stdio = yield* Stdio.Stdio
    const bytes: Stream.Stream<Uint8Array, PlatformError | CommandFailed> = file === "-"
      ? stdio.stdin
      : Stream.mapError(fs.stream(file), unreadable(file))
    yield* bytes.pipe(
      Stream.decodeText(),
      sieveStream({ tools: Option.getOrElse(tools, () => []) }),
      Stream.map((event) => `${JSON.stringify(event)}\n`),
      print
    )
  })
).pipe(Command.withDescription("Find the tool calls in a text; prints one event a line, as JSON"))

/** The message in the error body of every style. */
const errorMessage = Schema.decodeUnknownEffect(
  Schema.fromJsonString(Schema.Struct({ error: Schema.Struct({ message: Schema.String }) }))
)

/** The bytes of the reply to a sample that is replayed. Fails with the message that a caller would get. */
const replaySample = Effect.fnUntraced(function*(
  { dir, id, ...request }: ReplayRequest & { readonly dir: string }
) {
  const { playSample } = yield* Effect.promise(() => import("../replay.ts"))
  const response = yield* playSample({ dir, id, ...request })
  const failed = (message: string) => new CommandFailed({ message: `${id} in ${dir}: ${message}` })
  if (!response.ok) {
    const { error } = yield* Effect.orDie(errorMessage(yield* Effect.promise(() => response.text())))
    return yield* failed(error.message)
  }
  const reply = response.body
  return reply === null
    ? Stream.empty
    : Stream.fromReadableStream({ evaluate: () => reply, onError: (error) => failed(String(error)) })
})

const replayCommand = Command.make(
  "replay",
  {
    sample: Argument.String("sample").pipe(
      Argument.withDescription("Id of a sample in the configured folder, or the path of a sample's folder")
    ),
    style: Flag.Literals("style", playedStyles).pipe(
      Flag.withAlias("s"),
      Flag.withDescription("API of the reply"),
      Flag.withDefault(usualStyle)
    ),
    model: Flag.String("model").pipe(
      Flag.withAlias("m"),
      Flag.withDescription("Model of the request, which decides whether reasoning is shown"),
      Flag.withDefault("upstream-chat")
    ),
    whole: Flag.Boolean("whole").pipe(
      Flag.withDescription("Print one whole reply instead of a stream"),
      Flag.withDefault(false)
    ),
    tools: toolsFlag.pipe(Flag.optional)
  },
  Effect.fnUntraced(function*({ model, sample, style, tools, whole }) {
    const path = yield* Path.Path
    const isPath = path.basename(sample) !== sample
    const dir = isPath ? path.dirname(sample) : (yield* readConfig(Option.none())).config.samples.dir
    yield* print(
      yield* replaySample({
        dir,
        id: path.basename(sample),
        style,
        model,
        stream: !whole,
        tools: Option.getOrElse(tools, () => [])
      })
    )
  }, Effect.scoped)
).pipe(
  Command.provide(Environment.layer),
  Command.withDescription("Replay a saved sample through an API; prints what a client would get")
)

const licensesCommand = Command.make("licenses", {}, () =>
  Effect.gen(function*() {
    const { notices } = yield* Effect.promise(() => import("../assets.ts"))
    yield* print(Stream.fromEffect(notices))
  })).pipe(Command.withDescription("Print the licenses of the packages that the gateway contains"))

export const gateway = Command.make("model-gateway", serveFlags, serveWith).pipe(
  Command.withDescription("A gateway for language model APIs. Runs the server if no command is given."),
  Command.withSubcommands([
    serveCommand,
    healthCommand,
    checkConfigCommand,
    configSchemaCommand,
    importCommand,
    keysCommand,
    pricesCommand,
    modelsCommand,
    webhooksCommand,
    backupCommand,
    restoreCommand,
    storeCommand,
    replayCommand,
    sieveCommand,
    runAgentCommand,
    connectCommand,
    licensesCommand
  ])
)

export const runCommand = Effect.suspend(() => {
  const misplaced = misplacedOption(process.argv.slice(2))
  return misplaced === undefined
    ? Command.run(gateway, { version: versionLine() }).pipe(Effect.provide(NodeServices.layer))
    : Effect.fail(new CommandFailed({ message: misplaced }))
})
