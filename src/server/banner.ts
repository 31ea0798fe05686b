/**
 * The banner that the gateway prints at its start: its address, its configuration, and a call that works when pasted.
 */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as HttpServer from "effect/http/HttpServer"
import * as Path from "effect/Path"
import * as Redacted from "effect/Redacted"
import { AdminCredentials } from "../config/AdminCredentials.ts"
import { ConfigOrigin } from "../config/ConfigOrigin.ts"
import { ConfigStore } from "../config/ConfigStore.ts"
import type { UpstreamConfig } from "../config/GatewayConfig.ts"
import { chooseProxy, type ProxyVariables, proxyVariables } from "../config/proxies.ts"
import { SharedRevision } from "../config/sharedConfig.ts"
import { answerer, needsAccounts } from "../contracts/drivers.ts"
import { hashOfKey } from "../domain/identity.ts"
import { inLine, shellJson, shellWord } from "../domain/printed.ts"
import { listedRoutes } from "../domain/routeLists.ts"
import { ServerFindings } from "../upstream/ServerFindings.ts"
import { noDataFolder } from "../usage/configuredStore.ts"
import { UsageStore } from "../usage/UsageStore.ts"

export interface StartFacts {
  /** The listen address, such as `http://127.0.0.1:5001`. */
  readonly address: string
  /** Absolute path of the configuration file; `undefined` if the environment is the source. */
  readonly config: { readonly path: string; readonly exists: boolean } | undefined
  /** The shared configuration; `undefined` without a cluster. */
  readonly shared?: {
    readonly revision: number
    /** The file with a copy of it. */
    readonly keptIn: string | undefined
    /** Whether it survives the loss of the nodes and the store. */
    readonly lasting: boolean
  } | undefined
  /** In order; each with the number of its accounts. */
  readonly upstreams: ReadonlyArray<{
    readonly name: string
    readonly driver: string
    /** The address; empty with the embedded driver. */
    readonly address: string
    readonly accounts: number
  }>
  /** A model that the example asks for. */
  readonly model: string
  /** Upstreams behind a proxy, whose address is without credentials. */
  readonly proxies: ReadonlyArray<{ readonly upstream: string; readonly address: string }>
  /** What is wrong with the servers of upstreams, a sentence each. */
  readonly findings: ReadonlyArray<string>
  /** Whether unknown bearers are used as upstream tokens. */
  readonly directTokens: boolean
  /** The generated gateway key, if none is configured. */
  readonly generatedKey: string | undefined
  /** A configured gateway key. */
  readonly configuredKey: string | undefined
  /** The generated admin key, if none is configured. */
  readonly generatedAdminKey: string | undefined
  readonly console: boolean
  /** Whether the output is a terminal; only there the banner shows a configured key. */
  readonly terminal: boolean
}

const withoutCredentials = (address: string): string => {
  if (!URL.canParse(address)) return ""
  const { host, pathname, protocol } = new URL(address)
  return `${protocol}//${host}${pathname === "/" ? "" : pathname}`
}

const upstreamOf = ({ accounts, address, driver }: StartFacts["upstreams"][number]): string => {
  if (driver === answerer) return "embedded: deterministic, no network, not a model"
  const pool = accounts === 0
    ? needsAccounts(driver) ? "no accounts yet" : "no accounts: nothing is sent as a key"
    : `${accounts} account${accounts === 1 ? "" : "s"}`
  return `${driver} at ${withoutCredentials(address)}, ${pool}`
}

const sharedOf = ({ keptIn, lasting, revision }: NonNullable<StartFacts["shared"]>): string => {
  const place = keptIn === undefined ? "saved by the store alone" : `saved in ${keptIn}`
  const loss = "not saved to disk: changes are lost if the store and all nodes stop (set GATEWAY_DATA_DIR, or " +
    "appendonly in the store)"
  return `from the store, revision ${revision}; ${lasting ? place : loss}`
}

const configOf = ({ config, shared }: StartFacts): string =>
  shared !== undefined
    ? sharedOf(shared)
    : config === undefined
    ? "GATEWAY_CONFIG_JSON; changes stay in memory"
    : config.exists
    ? config.path
    : `${config.path} (not created yet; the admin API writes it)`

/** Upstreams that are shown at most. */
const mostShown = 8

/** The lines of the banner; the last one is empty. */
export const bannerLines = (facts: StartFacts): ReadonlyArray<string> => {
  const { address, configuredKey, generatedAdminKey, generatedKey, terminal } = facts
  const shown = generatedKey ?? (terminal ? configuredKey : undefined)
  return [
    `Model Gateway listens on ${address}`,
    `config        ${configOf(facts)}`,
    ...facts.upstreams.slice(0, mostShown).map((upstream) =>
      `upstream      ${facts.upstreams.length === 1 ? "" : `${upstream.name}: `}${upstreamOf(upstream)}`
    ),
    ...facts.proxies.map(({ address, upstream }) => `proxy         ${upstream} uses ${address}`),
    ...facts.findings.slice(0, mostShown).map((finding) => `warning       ${inLine(finding)}`),
    ...(generatedKey === undefined ? [] : [`gateway key   ${generatedKey}`]),
    ...(generatedAdminKey === undefined ? [] : [`admin key     ${generatedAdminKey}`]),
    ...(facts.console ? [`console       ${address}/console/  (sign in with the admin key)`] : []),
    ...(facts.directTokens && facts.upstreams.some(({ driver }) => driver !== answerer)
      ? [
        "Unknown API keys are forwarded to the upstream as credentials. Set auth.direct_tokens to false to reject them."
      ]
      : []),
    ...(generatedKey === undefined
      ? []
      : ["The gateway key is generated at every start. To keep one, set keys in the configuration."]),
    ...(generatedAdminKey === undefined
      ? []
      : ["The admin key is generated at every start. To keep one, set GATEWAY_ADMIN_KEY."]),
    "",
    ...(shown === undefined ? ["GATEWAY_KEY=…   # one of the configured keys"] : []),
    `curl -N ${address}/v1/chat/completions -H ${
      shown === undefined ? `"Authorization: Bearer $GATEWAY_KEY"` : shellWord(`Authorization: Bearer ${shown}`)
    } -H "Content-Type: application/json" \\`,
    `  -d ${shellJson({ model: facts.model, stream: true, messages: [{ role: "user", content: "Hello" }] })}`,
    ""
  ]
}

/** The proxies of upstreams. */
const proxiesOf = (upstreams: ReadonlyArray<UpstreamConfig>, environment: ProxyVariables): StartFacts["proxies"] =>
  upstreams.flatMap(({ base_url, enabled, name, proxy }) => {
    if (!enabled || base_url === "") return []
    const upstream = proxy === undefined ? undefined : Redacted.value(proxy)
    const chosen = chooseProxy({ account: undefined, upstream, environment }, base_url)
    return chosen?.proxy === undefined ? [] : [{ upstream: name, address: chosen.proxy.address }]
  })

/**
 * Prints the banner to the standard output if that is a terminal, else to the standard error, so that piped output is JSON
 * lines only.
 */
export const announce = Effect.fnUntraced(function*(terminal: boolean) {
  const server = yield* HttpServer.HttpServer
  const { configWritable, source: { config_path, env_backed } } = yield* ConfigOrigin
  const { adminKey, adminKeyGenerated } = yield* AdminCredentials
  const { shared } = yield* SharedRevision
  const fs = yield* FileSystem.FileSystem
  const { resolve } = yield* Path.Path
  const { auth, configured_keys, console, accounts, generated_key, route_table, ...config } = (yield* ConfigStore).now()
  const upstreams = [...config.upstreams.values()]
  const lines = bannerLines({
    address: HttpServer.formatAddress(server.address).replace(
      /^http:/,
      config.server.tls === undefined ? "http:" : "https:"
    ),
    config: env_backed
      ? undefined
      : { path: resolve(config_path), exists: yield* Effect.orElseSucceed(fs.exists(config_path), () => false) },
    shared: shared === undefined ? undefined : {
      revision: shared.revision(),
      keptIn: shared.keptIn(),
      lasting: yield* configWritable
    },
    upstreams: upstreams.map(({ base_url, driver, name }) => ({
      name,
      driver,
      address: base_url,
      accounts: accounts.filter(({ upstream }) => upstream === name).length
    })),
    model: listedRoutes(route_table)[0]?.id ?? "upstream-chat",
    proxies: proxiesOf(upstreams, yield* proxyVariables),
    findings: (yield* ServerFindings).now().map(({ message }) => message),
    directTokens: auth.direct_upstream !== undefined,
    generatedKey: generated_key,
    configuredKey: configured_keys.find((key) => hashOfKey(key) === undefined),
    generatedAdminKey: adminKeyGenerated ? Redacted.value(adminKey) : undefined,
    console: console.enabled,
    terminal
  })
  yield* (terminal ? Console.log : Console.error)(lines.join("\n"))
  const { detail } = yield* Effect.flatMap(UsageStore, (usage) => usage.status)
  if (detail === noDataFolder) yield* Effect.logInfo(`Usage is kept in memory only: ${detail}`)
})
