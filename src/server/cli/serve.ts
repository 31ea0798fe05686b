/**
 * `serve`: the gateway as a service. Its options stand in for the environment variables of the same meaning.
 */
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as GlobalFlag from "effect/cli/GlobalFlag"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Record from "effect/Record"
import { runService } from "./runService.ts"

export const serveFlags = {
  port: Flag.Int("port").pipe(
    Flag.withAlias("p"),
    Flag.withDescription("Port to listen on, 0 for any free one (else PORT, else 5001)"),
    Flag.optional
  ),
  host: Flag.String("host").pipe(
    Flag.withDescription("Address to listen on (else HOST, else 127.0.0.1)"),
    Flag.optional
  ),
  store: Flag.String("store").pipe(
    Flag.withDescription("Redis-protocol store that this node shares with others (else GATEWAY_STORE_URL, else none)"),
    Flag.optional
  ),
  config: Flag.Path("config").pipe(
    Flag.withAlias("c"),
    Flag.withDescription("Configuration file (else GATEWAY_CONFIG_JSON, else GATEWAY_CONFIG_PATH, else config.json)"),
    Flag.optional
  )
}

type ServeOptions = Command.Command.Config.Infer<typeof serveFlags>

/** Runs the gateway as the options say. */
export const serveWith = Effect.fnUntraced(function*({ config, host, port, store }: ServeOptions) {
  const level = yield* GlobalFlag.LogLevel
  const variables = Record.getSomes({
    PORT: Option.map(port, String),
    HOST: host,
    GATEWAY_STORE_URL: store,
    GATEWAY_CONFIG_PATH: config,
    // A blank variable counts as unset: the file that was asked for is the configuration.
    GATEWAY_CONFIG_JSON: Option.as(config, ""),
    GATEWAY_LOG_LEVEL: level
  })
  const environment = ConfigProvider.layerAdd(ConfigProvider.fromEnvRecord(variables), { asPrimary: true })
  yield* Effect.provide(runService, environment)
})

export const serveCommand = Command.make("serve", serveFlags, serveWith).pipe(
  Command.withDescription("Run the gateway (the default)")
)
