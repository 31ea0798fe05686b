/** What the driver of a server is made from. */
import type { ConfiguredModel, UpstreamConfig } from "../../config/GatewayConfig.ts"
import type { ServingContract } from "../../contracts/names.ts"
import type { FieldPolicy } from "../../contracts/shared/fieldPolicy.ts"
import type { HistoryReasoning } from "../../contracts/shared/serverThinking.ts"
import type { ServerFacts } from "../../contracts/vendors.ts"
import type { UpstreamModel } from "../../domain/UpstreamModel.ts"
import type { ExchangeLimits } from "../Exchange.ts"
import { LearnedRefusals } from "./LearnedRefusals.ts"

/** A model, with the server's name for it. */
export interface ServerModel
  extends UpstreamModel, Pick<ConfiguredModel, "contract" | "max_tokens" | "model" | "thinking">
{}

/** What is done for the server's cache of prompts. */
export type PromptCacheSettings = UpstreamConfig["prompt_cache"]

/** Settings of the driver of a server. A driver leaves out what its contract does not have. */
export interface ServerSettings {
  /** Without a trailing slash. The driver `openai` needs the version prefix in it (`http://127.0.0.1:8000/v1`). */
  readonly baseUrl: string
  /** What the server has otherwise than its contract says; nothing if it is `undefined`. */
  readonly server: ServerFacts | undefined
  /** The ids that callers use, with the server's names. Other ids are sent unchanged. */
  readonly models: ReadonlyArray<ServerModel>
  /** Model ids beyond the native ones. */
  readonly furtherModels: ReadonlyArray<UpstreamModel>
  /** The contract of completions; the driver's own if it is `undefined`. */
  readonly contract: ServingContract | undefined
  /**
   * How tools are declared: in the contract's own fields, as functions alone for servers that have no other tools, or in the prompt for models
   * that know none.
   */
  readonly tools: "native" | "functions" | "prompt"
  /** The turns whose thinking goes back. */
  readonly historyReasoning: HistoryReasoning
  /** How a reply that the caller gets as a whole is asked for. */
  readonly wholeReplies: "whole" | "streamed"
  /** Who compacts conversations of the Responses API. */
  readonly compaction: "auto" | "server" | "gateway"
  /** What is done for the server's cache of prompts; nothing if it is `undefined`. */
  readonly promptCache: PromptCacheSettings | undefined
  /** What becomes of fields that neither the gateway nor the vendor has. */
  readonly fields: FieldPolicy
  /** The upstream's name in the configuration, for advice; an app's driver may have none. */
  readonly upstream: string | undefined
  /** The header that has an account's key as it stands; the vendor's own if it is `undefined`. */
  readonly credentialHeader: string | undefined
  /** The headers of callers that the server gets too: names in lower case, or beginnings with a `*`. */
  readonly forwardHeaders: ReadonlyArray<string>
  readonly limits: ExchangeLimits
  /** What the server's refusals have shown. */
  readonly refusals: LearnedRefusals
}

const defaults = {
  server: undefined,
  contract: undefined,
  tools: "native",
  historyReasoning: "all",
  wholeReplies: "whole",
  compaction: "auto",
  promptCache: undefined,
  fields: "pass",
  upstream: undefined,
  credentialHeader: undefined,
  forwardHeaders: []
} as const satisfies Partial<ServerSettings>

/** Settings of the driver of a server, of which those with a default may be absent: a server has all of its contract, and gets all fields. */
export type ServerOptions =
  & Omit<ServerSettings, keyof typeof defaults | "refusals">
  & Partial<Pick<ServerSettings, keyof typeof defaults | "refusals">>

/** The settings, with the defaults of absent ones. */
export const settingsOf = (options: ServerOptions): ServerSettings => ({
  ...defaults,
  refusals: new LearnedRefusals(),
  ...options
})
