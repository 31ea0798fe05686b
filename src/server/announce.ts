/**
 * Tells how to use the gateway, once it listens. On a terminal to the standard output; else to the standard error, so that
 * what is piped is JSON lines alone.
 */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as HttpServer from "effect/http/HttpServer"
import * as Path from "effect/Path"
import * as Redacted from "effect/Redacted"
import { ConfigStore } from "../config/ConfigStore.ts"
import { noDataFolder } from "../usage/configuredStore.ts"
import { UsageStore } from "../usage/UsageStore.ts"
import { bannerLines } from "./banner.ts"

/** `terminal`: a person reads the standard output. */
export const announce = Effect.fnUntraced(function*(terminal: boolean) {
  const server = yield* HttpServer.HttpServer
  const store = yield* ConfigStore
  const fs = yield* FileSystem.FileSystem
  const { resolve } = yield* Path.Path
  const { auth, configured_keys, console, accounts, upstream } = yield* store.current
  const { config_path, env_backed } = store.source
  const lines = bannerLines({
    address: HttpServer.formatAddress(server.address),
    config: env_backed
      ? undefined
      : { path: resolve(config_path), exists: yield* Effect.orElseSucceed(fs.exists(config_path), () => false) },
    shared: store.shared === undefined ? undefined : {
      revision: store.shared.revision(),
      keptIn: store.shared.keptIn(),
      lasting: yield* store.configWritable
    },
    driver: upstream.driver,
    upstream: upstream.base_url,
    accounts: accounts.length,
    directTokens: auth.direct_tokens,
    generatedKey: store.generatedKey,
    configuredKey: configured_keys[0],
    generatedAdminKey: store.adminKeyGenerated ? Redacted.value(store.adminKey) : undefined,
    console: console.enabled,
    terminal
  })
  yield* (terminal ? Console.log : Console.error)(lines.join("\n"))
  const { detail } = yield* Effect.flatMap(UsageStore, (usage) => usage.status)
  if (detail === noDataFolder) yield* Effect.logInfo(`Usage is kept in memory only: ${detail}`)
})
