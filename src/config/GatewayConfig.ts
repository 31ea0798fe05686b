/**
 * The configuration in effect: one immutable object with every default filled in and every dependent value worked out.
 *
 * A group is the same object as before for as long as its content is the same, so that a change is seen by identity.
 */
import type * as Redacted from "effect/Redacted"
import type { Limits } from "../domain/limits.ts"
import type { MessagesMapping, Model, ModelTable } from "../domain/models.ts"
import type { Account, AccountTable } from "./Account.ts"
import type { RawConfig } from "./json.ts"
import type { KeyRecords } from "./keyRecords.ts"
import type * as Groups from "./schema.ts"

export interface AdminConfig {
  readonly jwt_expire_hours: number
  /** The admin password's scrypt string; from when it is there, it stands in for the environment's admin key. */
  readonly password_hash: Redacted.Redacted<string> | undefined
  /** One byte of the password's HMAC, so that most other credentials need no scrypt to be told from it. */
  readonly password_check: string | undefined
  readonly jwt_valid_after_unix: number
  /** Raised by every password change; JWTs of another generation are not accepted. */
  readonly generation: number
}

/** The group's settings; those that follow from the accounts are worked out. */
export interface RuntimeConfig extends Omit<typeof Groups.Runtime.Type, "key_max_inflight"> {
  readonly account_max_inflight: number
  /** Waiting requests that are held; 0 means that none waits. */
  readonly account_max_queue: number
  readonly global_max_inflight: number
  /** Requests that a business key without a limit of its own has under way at once; `undefined` for no limit. */
  readonly key_max_inflight: number | undefined
  /** Accounts multiplied by `account_max_inflight`. */
  readonly recommended_concurrency: number
  /** What the file sets; `undefined` where the effective value follows from the accounts. */
  readonly configured: {
    readonly account_max_queue: number | undefined
    readonly global_max_inflight: number | undefined
  }
}

export interface AuthConfig {
  /** Whether a credential that is no configured key is taken for the caller's own upstream token. */
  readonly direct_tokens: boolean
  /** Slots that callers with a token of their own hold at once. */
  readonly direct_max_inflight: number
  /** SHA-256 of keys that were removed, in hex, newest last: such bearers never go upstream. */
  readonly removed_keys: ReadonlyArray<string>
}

/** An entry of `upstream.models`: the id that callers use and the name that the upstream's server knows. */
export interface ConfiguredModel extends Model {
  readonly model: string
}

/** Time limits in seconds. */
export type TimeoutsConfig = typeof Groups.Timeouts.Type

export interface UpstreamConfig {
  readonly driver: "embedded" | "session" | "openai"
  /** Without a trailing slash; empty with the embedded driver. */
  readonly base_url: string
  readonly models: ReadonlyArray<ConfiguredModel>
  readonly tools: "native" | "prompt"
  readonly timeouts: TimeoutsConfig
}

export type AutoDeleteMode = "none" | "single" | "all"

/** The whole configuration in effect. Groups and fields go by the names that the file has for them. */
export interface GatewayConfig {
  /** Every business key that is accepted: those configured, or the generated one. */
  readonly keys: ReadonlyArray<string>
  /** The keys that the configuration lists. */
  readonly configured_keys: ReadonlyArray<string>
  /** The key of a start without keys, until a key is configured or it is removed. */
  readonly generated_key: string | undefined
  /** What keys may do, by key id. */
  readonly key_records: KeyRecords
  readonly accounts: ReadonlyArray<Account>
  readonly account_table: AccountTable
  readonly msgcompat_mapping: MessagesMapping
  /** As configured. */
  readonly model_aliases: ReadonlyMap<string, string>
  /** What model names resolve against: `upstream.models` beyond the natives, and the aliases by their normal form. */
  readonly model_table: ModelTable
  readonly admin: AdminConfig
  readonly runtime: RuntimeConfig
  readonly compat: typeof Groups.Compat.Type
  readonly responses: typeof Groups.Responses.Type
  readonly embeddings: typeof Groups.Embeddings.Type
  readonly auto_delete: { readonly mode: AutoDeleteMode }
  readonly upstream: UpstreamConfig
  readonly captures: typeof Groups.Captures.Type
  readonly requests: typeof Groups.RequestsGroup.Type
  readonly auth: AuthConfig
  readonly usage: typeof Groups.UsageGroup.Type
  readonly metrics: typeof Groups.Metrics.Type
  readonly console: typeof Groups.ConsoleGroup.Type
  readonly telemetry: typeof Groups.Telemetry.Type
  readonly samples: typeof Groups.Samples.Type
  readonly host: typeof Groups.Host.Type
  /** Bounds of what a caller and an upstream may send. */
  readonly limits: Limits
}

/** A configuration as its source has it, and what it means. */
export interface Snapshot {
  readonly raw: RawConfig
  readonly config: GatewayConfig
}
