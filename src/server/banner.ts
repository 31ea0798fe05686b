/**
 * What the start says: where the gateway listens, what it runs on, and a call that works when pasted.
 */

/** What the start knows. */
export interface StartFacts {
  /** The address that it listens on, such as `http://127.0.0.1:5001`. */
  readonly address: string
  /** Absolute path of the configuration file, and whether there is one; `undefined` where the environment has it. */
  readonly config: { readonly path: string; readonly exists: boolean } | undefined
  /** The configuration that nodes share; `undefined` where there are no other nodes. */
  readonly shared?: {
    readonly revision: number
    /** The file that keeps it. */
    readonly keptIn: string | undefined
    /** Whether it outlives the nodes and the store. */
    readonly lasting: boolean
  } | undefined
  readonly driver: string
  /** The upstream's address; empty with the embedded driver. */
  readonly upstream: string
  readonly accounts: number
  /** Whether bearers that are no key go upstream as tokens. */
  readonly directTokens: boolean
  /** The business key that this start made up, where none is configured. */
  readonly generatedKey: string | undefined
  /** A business key that is configured. */
  readonly configuredKey: string | undefined
  /** The admin key, where this start made it up. */
  readonly generatedAdminKey: string | undefined
  readonly console: boolean
  /** Whether a person reads it: configured keys are shown to nobody else. */
  readonly terminal: boolean
}

/** An address without the credentials that it may hold. */
const withoutCredentials = (address: string): string => {
  if (!URL.canParse(address)) return ""
  const { host, pathname, protocol } = new URL(address)
  return `${protocol}//${host}${pathname === "/" ? "" : pathname}`
}

const upstreamOf = ({ accounts, driver, upstream }: StartFacts): string => {
  if (driver === "embedded") return "embedded: deterministic, no network, not a model"
  const pool = accounts === 0
    ? driver === "openai" ? "no accounts: nothing is sent as a key" : "no accounts yet"
    : `${accounts} account${accounts === 1 ? "" : "s"}`
  return `${driver} at ${withoutCredentials(upstream)}, ${pool}`
}

const sharedOf = ({ keptIn, lasting, revision }: NonNullable<StartFacts["shared"]>): string => {
  const place = keptIn === undefined ? "kept by the store alone" : `kept in ${keptIn}`
  const loss = "changes are gone when the store and all nodes stop (set GATEWAY_DATA_DIR, or appendonly in the store)"
  return `the store's, revision ${revision}; ${lasting ? place : loss}`
}

const configOf = ({ config, shared }: StartFacts): string =>
  shared !== undefined
    ? sharedOf(shared)
    : config === undefined
    ? "GATEWAY_CONFIG_JSON; changes stay in memory"
    : config.exists
    ? config.path
    : `${config.path} (none yet; the admin API will write it)`

/** The key as a shell takes it between double quotes. */
const quoted = (key: string): string => key.replaceAll(/["$`\\]/g, "\\$&")

/** The lines, the last one empty. */
export const bannerLines = (facts: StartFacts): ReadonlyArray<string> => {
  const { address, configuredKey, generatedAdminKey, generatedKey, terminal } = facts
  const shown = generatedKey ?? (terminal ? configuredKey : undefined)
  return [
    `Model Gateway listens on ${address}`,
    `config        ${configOf(facts)}`,
    `upstream      ${upstreamOf(facts)}`,
    ...(generatedKey === undefined ? [] : [`business key  ${generatedKey}`]),
    ...(generatedAdminKey === undefined ? [] : [`admin key     ${generatedAdminKey}`]),
    ...(facts.console ? [`console       ${address}/console/  (sign in with the admin key)`] : []),
    ...(facts.directTokens
      ? ["Bearers that are no business key go upstream as tokens of their own (auth.direct_tokens)."]
      : []),
    ...(generatedKey === undefined && generatedAdminKey === undefined ? [] : [
      "Generated keys change with every start until they are configured (keys in the config file, GATEWAY_ADMIN_KEY)."
    ]),
    "",
    ...(shown === undefined ? ["GATEWAY_KEY=…   # one of the configured keys"] : []),
    `curl -N ${address}/v1/chat/completions -H "Authorization: Bearer ${
      shown === undefined ? "$GATEWAY_KEY" : quoted(shown)
    }" -H "Content-Type: application/json" \\`,
    `  -d '{"model":"upstream-chat","stream":true,"messages":[{"role":"user","content":"Hello"}]}'`,
    ""
  ]
}
