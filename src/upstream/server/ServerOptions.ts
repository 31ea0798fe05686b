/** What the driver of a server is made from. */
import type { ServerApi } from "../../contracts/names.ts"
import type { FieldPolicy } from "../../contracts/shared/fieldPolicy.ts"
import type { HistoryReasoning, ThinkingWords } from "../../contracts/shared/serverThinking.ts"
import type { UpstreamModel } from "../../domain/UpstreamModel.ts"
import type { ExchangeLimits } from "../Exchange.ts"

/** A model, with the server's name for it. */
export interface ServerModel extends UpstreamModel {
  readonly model: string
  /** The words in which the server reads whether and how much to think. */
  readonly thinking?: ThinkingWords
  /** The API of the model, in place of the server's. */
  readonly api?: ServerApi
  /** The limit of output that a server gets which demands one, if the caller has none. */
  readonly max_tokens?: number
}

/** Settings of the driver of a server. A driver leaves out what its contract does not have. */
export interface ServerOptions {
  /** Without a trailing slash. The driver `openai` needs the version prefix in it (`http://127.0.0.1:8000/v1`). */
  readonly baseUrl: string
  /** The ids that callers use, with the server's names. Other ids are sent unchanged. */
  readonly models: ReadonlyArray<ServerModel>
  /** Model ids beyond the native ones. */
  readonly furtherModels: ReadonlyArray<UpstreamModel>
  /** The API of completions; the driver's own if it is absent. */
  readonly api?: ServerApi | undefined
  /**
   * How tools are declared: in the API's own fields (the default), as functions alone for servers that have no other tools, or in the prompt
   * for models that know none.
   */
  readonly tools?: "native" | "functions" | "prompt" | undefined
  /** The turns whose thinking goes back; the default is all. */
  readonly historyReasoning?: HistoryReasoning | undefined
  /** How a reply that the caller gets as a whole is asked for; the default is as a whole. */
  readonly wholeReplies?: "whole" | "streamed" | undefined
  /** Who compacts conversations of the Responses API; the default is `auto`. */
  readonly compaction?: "auto" | "server" | "gateway" | undefined
  /** What is done for the server's cache of prompts. Without it, nothing is. */
  readonly promptCache?: {
    /** `prompt_cache_key`, `header` and a name, or `off`; unset: as the vendor documents. */
    readonly key?: string
    /** Whether requests to a messages server get marks. */
    readonly breakpoints: "auto" | "off"
    readonly mark_ttl: "5m" | "1h"
    /** Estimated tokens from which a prompt gets marks; unset: 1,024. */
    readonly min_tokens?: number
  } | undefined
  /** What becomes of fields that neither the gateway nor the vendor has. Default: all pass. */
  readonly fields?: FieldPolicy | undefined
  /** The upstream's name in the configuration, for advice; an app's driver may have none. */
  readonly upstream?: string | undefined
  /** The header that has an account's key as it stands; the vendor's own if it is absent. */
  readonly credentialHeader?: string | undefined
  /** The headers of callers that the server gets too: names in lower case, or beginnings with a `*`. Default: none. */
  readonly forwardHeaders?: ReadonlyArray<string> | undefined
  readonly limits: ExchangeLimits
}
