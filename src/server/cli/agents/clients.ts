/**
 * How each agent is started so that it is connected to a gateway: its arguments, its environment, and files of a temporary folder. Nothing
 * that belongs to the user is read or written. Sources: the documents of each agent, and runs of it.
 */
import { isRecord, type JsonRecord } from "../../../domain/json.ts"
import { inLine, isPlainWord, opencodeText, shellWord, shownJson, tomlText } from "../../../domain/printed.ts"

/** A model of the gateway, as its list tells of it. What is unknown is absent. */
export interface AgentModel {
  readonly id: string
  readonly name?: string | undefined
  readonly description?: string | undefined
  /** Tokens of prompt and reply together. */
  readonly window?: number | undefined
  readonly maxOutput?: number | undefined
  readonly efforts?: ReadonlyArray<string> | undefined
  readonly input?: ReadonlyArray<string> | undefined
}

/** What an agent is connected to. */
export interface Connection {
  /** Base URL without a trailing slash. */
  readonly url: string
  readonly key: string
  readonly models: ReadonlyArray<AgentModel>
  /** The model that the user names. */
  readonly model: AgentModel | undefined
  /** The agent keeps the user's own login with its vendor. */
  readonly ownLogin: boolean
  /** A name for the session, for agents that name none. */
  readonly session: string
  /** The path of a file in the temporary folder. */
  readonly fileAt: (name: string) => string
}

/** How an agent is started. The key is in the environment or in files, and never among the arguments. */
export interface Start {
  readonly args: ReadonlyArray<string>
  readonly env: { readonly [name: string]: string }
  /** Contents by the name of the file. */
  readonly files: { readonly [name: string]: string }
}

interface Agent {
  /** The program's name. */
  readonly program: string
  readonly start: (connection: Connection) => Start
  /** Arguments of the program that print what `start` needs as JSON, before it is called. */
  readonly asks?: ReadonlyArray<string>
  /** Continues with what the program printed. */
  readonly startWith?: (connection: Connection, printed: unknown) => Start
}

const json = (value: unknown): string => `${shownJson(value, 2)}\n`

/**
 * The model for agents that need one: the user's, else the first one whose name every shell takes as it is. A server may give a model any name,
 * so that the others are for users who name them; empty without such a model.
 */
const chosen = ({ model, models }: Pick<Connection, "model" | "models">): string =>
  model?.id ?? models.find(({ id }) => isPlainWord(id))?.id ?? ""

/** True for a model that Claude Code knows by itself. */
const isOfClaude = ({ id }: AgentModel): boolean => /claude|anthropic/i.test(id)

/**
 * The window for Claude Code, which assumes a million tokens for a model that it does not know, so the smallest window of such models
 * counts where the user names none.
 */
const claudeWindow = ({ model, models }: Connection): number | undefined => {
  if (model !== undefined) return model.window
  const windows = models.flatMap((each) => isOfClaude(each) || each.window === undefined ? [] : [each.window])
  return windows.length === 0 ? undefined : Math.min(...windows)
}

const claude = (connection: Connection): Start => {
  const { fileAt, key, model, ownLogin, url } = connection
  const window = claudeWindow(connection)
  const env = {
    ANTHROPIC_BASE_URL: url,
    ...(ownLogin ? { ANTHROPIC_CUSTOM_HEADERS: `x-gateway-key: ${key}` } : { ANTHROPIC_AUTH_TOKEN: key }),
    CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY: "1",
    ENABLE_TOOL_SEARCH: "true",
    ...(model === undefined ? {} : {
      ANTHROPIC_MODEL: model.id,
      ANTHROPIC_DEFAULT_OPUS_MODEL: model.id,
      ANTHROPIC_DEFAULT_SONNET_MODEL: model.id,
      ANTHROPIC_DEFAULT_HAIKU_MODEL: model.id
    }),
    ...(window === undefined ? {} : { CLAUDE_CODE_MAX_CONTEXT_TOKENS: String(window) })
  }
  // Settings win over the environment of the shell.
  return { args: ["--settings", fileAt("settings.json")], env: {}, files: { "settings.json": json({ env }) } }
}

/** Fields of an entry that switch codex to a dialect of its vendor. */
const dialects: ReadonlySet<string> = new Set(["use_responses_lite", "tool_mode", "multi_agent_version"])

/** The entry of codex's own catalogue that stands for models of the gateway: it has the instructions of codex, and no dialect. */
const templateIn = (printed: unknown): JsonRecord | undefined => {
  const list: unknown = isRecord(printed) ? printed["models"] : printed
  const entries: ReadonlyArray<unknown> = Array.isArray(list) ? list : []
  const usable = entries.filter((entry): entry is JsonRecord =>
    isRecord(entry) && typeof entry["base_instructions"] === "string" && entry["base_instructions"] !== ""
  )
  const found = usable.find((entry) => entry["use_responses_lite"] !== true) ?? usable[0]
  return found && Object.fromEntries(Object.entries(found).filter(([name]) => !dialects.has(name)))
}

const codexEntry = (template: JsonRecord, model: AgentModel, priority: number): JsonRecord => {
  const { description, efforts, id, input, name = id, window } = model
  const levels = efforts?.map((effort) => ({ effort, description: effort }))
  const { default_reasoning_level: usual, ...rest } = template
  const level = efforts === undefined ? usual : efforts.includes("medium") ? "medium" : efforts[0]
  return {
    ...rest,
    slug: id,
    display_name: name,
    description: description ?? name,
    priority,
    visibility: "list",
    ...(levels === undefined ? {} : { supported_reasoning_levels: levels }),
    ...(level === undefined ? {} : { default_reasoning_level: level }),
    ...(window === undefined ? {} : { context_window: window, max_context_window: window }),
    ...(input === undefined ? {} : { input_modalities: input.filter((each) => each === "text" || each === "image") })
  }
}

/** A value of a `-c` option, which is TOML: its strings are written as in JSON. */
const option = (
  name: string,
  value: string | boolean
): ReadonlyArray<string> => ["-c", `${name}=${typeof value === "string" ? tomlText(value) : value}`]

const codex = (connection: Connection, printed: unknown): Start => {
  const { fileAt, key, models, url } = connection
  const template = templateIn(printed)
  const provider = "model_providers.gateway"
  return {
    args: [
      ...option("model_provider", "gateway"),
      ...option("model", chosen(connection)),
      ...option(`${provider}.name`, "Model Gateway"),
      ...option(`${provider}.base_url`, `${url}/v1`),
      ...option(`${provider}.env_key`, "GATEWAY_KEY"),
      ...option(`${provider}.wire_api`, "responses"),
      ...option(`${provider}.supports_websockets`, true),
      ...(template === undefined ? [] : option("model_catalog_json", fileAt("models.json")))
    ],
    env: { GATEWAY_KEY: key },
    files: template === undefined
      ? {}
      : { "models.json": json({ models: models.map((model, i) => codexEntry(template, model, i)) }) }
  }
}

const geminiSettings = { security: { auth: { selectedType: "gemini-api-key" } } }

const gemini = (connection: Connection): Start => {
  const { fileAt, key, session, url } = connection
  return {
    args: [],
    env: {
      GOOGLE_GEMINI_BASE_URL: url,
      GEMINI_API_KEY: key,
      GEMINI_MODEL: chosen(connection),
      GEMINI_CLI_CUSTOM_HEADERS: `x-gateway-session: ${session}`,
      GEMINI_CLI_SYSTEM_SETTINGS_PATH: fileAt("settings.json")
    },
    files: { "settings.json": json(geminiSettings) }
  }
}

const opencodeModel = ({ maxOutput, name, window }: AgentModel) => ({
  ...(name === undefined ? {} : { name }),
  ...(window === undefined ? {} : { limit: { context: window, output: maxOutput ?? window } })
})

const opencodeConfig = (connection: Pick<Connection, "model" | "models" | "url">, apiKey: string): string =>
  opencodeText({
    provider: {
      gateway: {
        npm: "@ai-sdk/openai-compatible",
        name: "Model Gateway",
        options: { apiKey, baseURL: `${connection.url}/v1` },
        models: Object.fromEntries(connection.models.map((each) => [each.id, opencodeModel(each)]))
      }
    },
    model: `gateway/${chosen(connection)}`
  })

const opencode = (connection: Connection): Start => ({
  args: [],
  env: {
    GATEWAY_KEY: connection.key,
    // The key is the first text of its kind.
    OPENCODE_CONFIG_CONTENT: opencodeConfig(connection, "{env:GATEWAY_KEY}").replace("\\u007benv:", "{env:")
  },
  files: {}
})

const qwen = (connection: Connection): Start => ({
  args: ["--auth-type", "openai"],
  env: {
    OPENAI_BASE_URL: `${connection.url}/v1`,
    OPENAI_API_KEY: connection.key,
    OPENAI_MODEL: chosen(connection)
  },
  files: {}
})

/** The agents that `run` starts. */
export const agents = {
  claude: { program: "claude", start: claude },
  codex: {
    program: "codex",
    start: (connection) => codex(connection, undefined),
    asks: ["debug", "models", "--bundled"],
    startWith: codex
  },
  gemini: { program: "gemini", start: gemini },
  opencode: { program: "opencode", start: opencode },
  qwen: { program: "qwen", start: qwen }
} as const satisfies { readonly [name: string]: Agent }

export type AgentName = keyof typeof agents

export const agentNames = Object.keys(agents) as ReadonlyArray<AgentName>

/** The agents that `connect` knows. */
export const connectedNames = [...agentNames, "pi", "cline"] as const

export type ConnectedName = typeof connectedNames[number]

const exportLines = (variables: { readonly [name: string]: string }): string =>
  Object.entries(variables).map(([name, value]) => `export ${name}=${shellWord(value)}\n`).join("")

/**
 * The lines for a permanent setup, with what stands for the key. A shell, an editor and a terminal take every value as text: keys, addresses and
 * names of models alike.
 */
export const setupLines = (name: ConnectedName, connection: Omit<Connection, "fileAt" | "session">): string => {
  const { key, models, ownLogin, url } = connection
  const model = chosen(connection)
  switch (name) {
    case "claude":
      return exportLines({
        ANTHROPIC_BASE_URL: url,
        ...(ownLogin ? { ANTHROPIC_CUSTOM_HEADERS: `x-gateway-key: ${key}` } : { ANTHROPIC_AUTH_TOKEN: key }),
        CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY: "1",
        ENABLE_TOOL_SEARCH: "true",
        ...(connection.model === undefined ? {} : { ANTHROPIC_MODEL: model })
      })
    case "codex":
      return `# ~/.codex/config.toml; the key: export GATEWAY_KEY=${shellWord(key)}
model = ${tomlText(model)}
model_provider = "gateway"

[model_providers.gateway]
name = "Model Gateway"
base_url = ${tomlText(`${url}/v1`)}
env_key = "GATEWAY_KEY"
wire_api = "responses"
supports_websockets = true
`
    case "gemini":
      return `# ~/.gemini/settings.json: ${JSON.stringify(geminiSettings)}\n${
        exportLines({ GOOGLE_GEMINI_BASE_URL: url, GEMINI_API_KEY: key, GEMINI_MODEL: model })
      }`
    case "opencode":
      return opencodeConfig(connection, key)
    case "qwen":
      return exportLines({ OPENAI_BASE_URL: `${url}/v1`, OPENAI_API_KEY: key, OPENAI_MODEL: model })
    case "pi":
      return json({
        providers: {
          gateway: {
            baseUrl: `${url}/v1`,
            api: "openai-completions",
            apiKey: key,
            models: models.map(({ id, maxOutput, window }) => ({
              id,
              ...(window === undefined ? {} : { contextWindow: window }),
              ...(maxOutput === undefined ? {} : { maxTokens: maxOutput })
            }))
          }
        }
      })
    case "cline":
      return `API Provider: OpenAI Compatible\nBase URL: ${inLine(url)}/v1\nAPI Key: ${inLine(key)}\nModel ID: ${
        inLine(model)
      }\n`
  }
}
