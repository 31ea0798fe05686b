/**
 * Who calls, by what clients say of themselves: the app, and its session, agent and parent agent.
 *
 * These are claims. They steer a preference and label records; they grant nothing, and name nothing beyond their key.
 */
import { isRecord } from "./json.ts"
import { remembering } from "./remembering.ts"

/** The programs that are known. `sdk`: a library of a vendor; `other`: any other program. */
export const apps = [
  "claude-code",
  "codex",
  "gemini-cli",
  "opencode",
  "qwen-code",
  "pi",
  "cline",
  "roo-code",
  "kilo-code",
  "amp",
  "open-webui",
  "sdk",
  "curl",
  "other"
] as const

export type App = typeof apps[number]

/** Headers of a request by their names in lower case. */
export type RequestHeaders = { readonly [name: string]: string | undefined }

/** What logs, records and usage keep of sessions and agents. */
export const sessionPrivacies = ["full", "hash", "none"] as const

export type SessionPrivacy = typeof sessionPrivacies[number]

/** Returns the SHA-256 of a text's UTF-8 bytes in hex. */
type Sha256Hex = (text: string) => string

const names: ReadonlyArray<readonly [pattern: RegExp, app: App]> = [
  [/^claude-(?:cli|code)\//, "claude-code"],
  [/codex/i, "codex"],
  [/\bopencode\//, "opencode"],
  [/GeminiCLI[-/]/, "gemini-cli"],
  [/QwenCode[-/]/, "qwen-code"],
  [/^pi\//, "pi"],
  [/\bCline\//, "cline"],
  [/\bRooCode\//, "roo-code"],
  [/\bKilo/, "kilo-code"],
  [/\bOpen ?WebUI\b/i, "open-webui"],
  [/\bamp\//i, "amp"],
  [/^curl\//, "curl"],
  [/^(?:Async)?(?:OpenAI|AzureOpenAI|Anthropic)\/|^google-genai-sdk\/|^ai-sdk\//, "sdk"]
]

const longestAgent = 300

const appOf = remembering((agent): App => names.find(([pattern]) => pattern.test(agent))?.[1] ?? "other")

/** Headers that one app alone sends. */
const appHeaders: ReadonlyArray<readonly [name: string, app: App]> = [
  ["x-claude-code-session-id", "claude-code"],
  ["x-amp-thread-id", "amp"],
  ["x-openwebui-chat-id", "open-webui"]
]

/** The app of a request. */
export const appIn = (headers: RequestHeaders): App => {
  const { originator } = headers
  if (originator !== undefined && /codex/i.test(originator.slice(0, longestAgent))) return "codex"
  const named = appOf((headers["user-agent"] ?? "").slice(0, longestAgent))
  return named === "other" || named === "sdk"
    ? appHeaders.find(([name]) => headers[name] !== undefined)?.[1] ?? named
    : named
}

/** The session in the text that Claude Code sends as the user's id. */
const sessionOfUser = (user: unknown): unknown => {
  if (typeof user !== "string" || user.length > 4_096) return undefined
  if (!user.startsWith("{")) return /_session_([\w-]+)$/.exec(user)?.[1]
  try {
    const said: unknown = JSON.parse(user)
    return isRecord(said) ? said["session_id"] : undefined
  } catch {
    return undefined
  }
}

/** Where a session is named: in a header, or in the request's body. */
type Source = string | ((body: { readonly [field: string]: unknown }, app: App) => unknown)

/** The first one that has a value counts. */
const sources: ReadonlyArray<Source> = [
  "x-gateway-session",
  "x-claude-code-session-id",
  ({ metadata }) => isRecord(metadata) ? sessionOfUser(metadata["user_id"]) : undefined,
  "session-id",
  "session_id",
  ({ prompt_cache_key: key }, app) => app === "codex" ? key : undefined,
  "x-parent-session-id",
  "x-session-id",
  "x-session-affinity",
  "x-task-id",
  "x-cline-task-id",
  "x-roo-task-id",
  "x-kilocode-taskid",
  "x-amp-thread-id",
  "x-openwebui-chat-id",
  ({ session_id: session }) => session
]

/** The headers that name a session or an agent. */
export const identityHeaders: ReadonlySet<string> = new Set([
  ...sources.filter((source) => typeof source === "string"),
  "x-gateway-agent",
  "x-claude-code-agent-id",
  "x-claude-code-parent-agent-id",
  "thread-id",
  "x-codex-parent-thread-id"
])

const shortest = /^[\x21-\x7e]{1,128}$/

/** What is kept of a caller. */
export interface ShownIdentity {
  readonly app: App
  readonly session?: string
  readonly agent?: string
  readonly parent?: string
}

/** Who sent a request. The body may name a session that no header names. */
export class ClientIdentity {
  readonly app: App
  #session: string | undefined
  /** The place of the session's source among `sources`. */
  #rank = sources.length
  readonly agent: string | undefined
  readonly parent: string | undefined
  readonly #sha256: Sha256Hex
  readonly #privacy: SessionPrivacy

  constructor(headers: RequestHeaders, privacy: SessionPrivacy, sha256: Sha256Hex) {
    this.#sha256 = sha256
    this.#privacy = privacy
    this.app = appIn(headers)
    for (let rank = 0; rank < sources.length; rank++) {
      const source = sources[rank]!
      const value = typeof source === "string" ? headers[source] : undefined
      if (value === undefined || value === "") continue
      this.#session = this.#named(value)
      this.#rank = rank
      break
    }
    const agent = headers["x-gateway-agent"] ?? headers["x-claude-code-agent-id"] ??
      (this.app === "codex" && headers["thread-id"] !== this.#session ? headers["thread-id"] : undefined) ??
      (headers["x-parent-session-id"] === undefined ? undefined : headers["x-session-id"])
    this.agent = this.#named(agent)
    this.parent = this.#named(headers["x-claude-code-parent-agent-id"] ?? headers["x-codex-parent-thread-id"])
  }

  /** 1 to 128 visible ASCII characters; `undefined` without a name. */
  get session(): string | undefined {
    return this.#session
  }

  /** What `privacy.sessions` allows to keep. */
  get shown(): ShownIdentity {
    const { agent, app, parent } = this
    const session = this.#session
    return this.#privacy === "none" ? { app } : {
      app,
      ...(session === undefined ? {} : { session: this.#kept(session) }),
      ...(agent === undefined ? {} : { agent: this.#kept(agent) }),
      ...(parent === undefined ? {} : { parent: this.#kept(parent) })
    }
  }

  /** Reads the request's body, once it is known. */
  readBody(body: unknown): void {
    if (!isRecord(body)) return
    for (let rank = 0; rank < this.#rank; rank++) {
      const source = sources[rank]!
      const value = typeof source === "string" ? undefined : source(body, this.app)
      if (typeof value !== "string" || value === "") continue
      this.#session = this.#named(value)
      this.#rank = rank
      return
    }
  }

  /** Another value is replaced by its hash. */
  #named(value: string | undefined): string | undefined {
    if (value === undefined || value === "") return undefined
    return shortest.test(value) ? value : this.#sha256(value).slice(0, 32)
  }

  #kept(value: string): string {
    return this.#privacy === "hash" ? this.#sha256(`session ${value}`).slice(0, 16) : value
  }
}
