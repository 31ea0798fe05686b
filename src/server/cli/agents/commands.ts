/**
 * The commands that connect agents to a gateway.
 */
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Runtime from "effect/Runtime"
import * as Schema from "effect/Schema"
import { makeConfigFile } from "../../../config/ConfigFile.ts"
import { Environment } from "../../../config/Environment.ts"
import { parseConfig } from "../../../config/json.ts"
import { readRegularFile } from "../../../config/regularFile.ts"
import { inLine } from "../../../domain/printed.ts"
import { addressFrom } from "../health.ts"
import { agentNames, connectedNames, setupLines } from "./clients.ts"
import { AgentFailed, modelNamed, readGateway, runAgent } from "./runAgent.ts"

const flags = {
  gateway: Flag.String("gateway").pipe(
    Flag.withDescription("Base URL of the gateway (default: $GATEWAY_URL, or from $HOST and $PORT)"),
    Flag.optional
  ),
  keyFile: Flag.Path("key-file").pipe(
    Flag.withDescription("File with the key (default: $GATEWAY_KEY, or the only key of the configuration file)"),
    Flag.optional
  ),
  model: Flag.String("model").pipe(
    Flag.withDescription("Model of the gateway (default: the agent's own choice)"),
    Flag.optional
  ),
  ownLogin: Flag.Boolean("own-login").pipe(
    Flag.withDescription("Claude Code keeps your login, and the gateway's key goes beside it"),
    Flag.withDefault(false)
  )
}

const flagNames = ["--gateway", "--key-file", "--model", "--own-login"] as const

type Options = Command.Command.Config.Infer<typeof flags>

const urlOf = ({ gateway }: Options): Effect.Effect<string, AgentFailed> => {
  const given = Option.getOrUndefined(gateway) ?? process.env["GATEWAY_URL"]?.trim()
  const base = given === undefined || given === "" ? addressFrom(process.env) : given
  const url = (base ?? "").replace(/\/+$/, "").replace(/\/v1$/, "")
  return URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)
    ? Effect.succeed(url)
    : Effect.fail(new AgentFailed({ message: `${url} is not an http or https URL` }))
}

const noKey = new AgentFailed({
  message:
    "There is no key: name a file with --key-file, or set GATEWAY_KEY. A configuration file counts if it has exactly one key"
})

/**
 * Why arguments of the command line cannot be those of `run`: an option after the name of the agent is the agent's own, and stands after `--`.
 * `undefined` for any other arguments.
 */
export const misplacedOption = ([command, ...args]: ReadonlyArray<string>): string | undefined => {
  if (command !== "run") return undefined
  const own = args.includes("--") ? args.slice(0, args.indexOf("--")) : args
  const client = own.findIndex((arg) => agentNames.some((name) => name === arg))
  const taken = new Set([...flagNames, "--help", "-h"])
  const option = client === -1
    ? undefined
    : own.slice(client + 1).find((arg) => arg.startsWith("-") && !taken.has(arg.replace(/=.*/, "")))
  return option === undefined
    ? undefined
    : `put the agent's arguments after --: model-gateway run ${own[client]} -- ${inLine(option)} …`
}

/** An agent has ended with another exit code than 0, which it has explained itself. */
class AgentEnded extends Schema.TaggedError<AgentEnded>()("AgentEnded", { code: Schema.Int }) {
  override readonly [Runtime.errorReported] = false
  override get [Runtime.errorExitCode](): number {
    return this.code
  }
}

/** Bytes of a file with a key at most. */
const longestKey = 64 * 1024

/** The key of a file, of the environment, or of a configuration with one key. */
const keyOf = Effect.fnUntraced(function*({ keyFile }: Options) {
  if (Option.isSome(keyFile)) {
    const path = keyFile.value
    const key = (yield* readRegularFile(path, longestKey)).toString("utf8").trim()
    return key === "" ? yield* new AgentFailed({ message: `${path} has no key` }) : key
  }
  const own = process.env["GATEWAY_KEY"]?.trim()
  if (own !== undefined && own !== "") return own
  const { configPath } = yield* Environment
  const found = yield* Effect.flatMap(makeConfigFile(configPath), ({ read }) => read)
  const raw = Option.isSome(found) ? yield* Effect.option(parseConfig(configPath, found.value.text)) : Option.none()
  const keys = Option.isSome(raw) ? raw.value["keys"] : undefined
  const [key, ...others] = Array.isArray(keys) ? keys : []
  return typeof key === "string" && others.length === 0 ? key : yield* noKey
})

export const runAgentCommand = Command.make(
  "run",
  {
    ...flags,
    client: Argument.Literals("client", agentNames).pipe(Argument.withDescription("The agent to start")),
    args: Argument.String("arguments").pipe(
      Argument.withDescription("Arguments of the agent, after --"),
      Argument.variadic()
    )
  },
  Effect.fnUntraced(function*({ args, client, ...options }) {
    const code = yield* runAgent(client, {
      url: yield* urlOf(options),
      key: yield* keyOf(options),
      model: Option.getOrUndefined(options.model),
      ownLogin: options.ownLogin,
      args
    })
    if (code !== 0) return yield* new AgentEnded({ code })
  })
).pipe(
  Command.provide(Environment.layer),
  Command.withDescription("Start an agent that is connected to the gateway; changes none of your files")
)

export const connectCommand = Command.make(
  "connect",
  {
    ...flags,
    showKey: Flag.Boolean("show-key").pipe(
      Flag.withDescription("Print the key in place of YOUR_KEY"),
      Flag.withDefault(false)
    ),
    client: Argument.Literals("client", connectedNames).pipe(Argument.withDescription("The agent to set up"))
  },
  Effect.fnUntraced(function*({ client, showKey, ...options }) {
    const url = yield* urlOf(options)
    const key = yield* keyOf(options)
    const models = yield* readGateway(url, key)
    const model = yield* modelNamed(models, Option.getOrUndefined(options.model))
    const lines = setupLines(client, {
      url,
      key: showKey ? key : "YOUR_KEY",
      models,
      model,
      ownLogin: options.ownLogin
    })
    yield* Console.log(lines.trimEnd())
  })
).pipe(
  Command.provide(Environment.layer),
  Command.withDescription("Print the lines that connect an agent to the gateway for good")
)
