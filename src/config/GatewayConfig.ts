/**
 * The configuration in effect: one immutable object with all defaults and derived values.
 *
 * A group whose content is unchanged stays the same object, so that a change can be detected by identity.
 */
import type * as Redacted from "effect/Redacted"
import type { DriverName } from "../contracts/drivers.ts"
import type { CloudName, ServingContract, VendorPlace } from "../contracts/names.ts"
import type { Limits } from "../domain/limits.ts"
import type { ModelFacts } from "../domain/modelFacts.ts"
import type { Model } from "../domain/models.ts"
import type { NameTable } from "../domain/nameTable.ts"
import type { NoticeType } from "../domain/notices.ts"
import type { PriceTable } from "../domain/prices.ts"
import type { Listing, RouteOptions, RouteTable, WrittenTarget } from "../domain/routes.ts"
import type { AlsoOn } from "../domain/tries.ts"
import type { Account, AccountTable } from "./Account.ts"
import type { RawConfig } from "./json.ts"
import type { KeyRecords } from "./keyRecords.ts"
import type * as Groups from "./schema.ts"
import type { UpstreamTls } from "./tls.ts"
import type { KeyLimit } from "./windowLimit.ts"

export interface AdminConfig {
  /** Operators may not change the configuration. */
  readonly locked: boolean
  readonly jwt_expire_hours: number
  /** The scrypt hash of the admin password. When set, it replaces the environment's admin key. */
  readonly password_hash: Redacted.Redacted<string> | undefined
  /** One byte of the password's HMAC. It rejects most wrong credentials without scrypt. */
  readonly password_check: string | undefined
  readonly jwt_valid_after_unix: number
  /** Incremented by every password change. JWTs of another generation are rejected. */
  readonly generation: number
  readonly tokens: ReadonlyArray<AdminToken>
}

/** A named token for the admin API. */
export interface AdminToken {
  readonly id: string
  readonly name: string
  readonly role: Groups.Role
  /** SHA-256 of the secret, in hex. */
  readonly hash: Redacted.Redacted<string>
  /** Unix milliseconds from which on the token is rejected. */
  readonly expires_at: number | undefined
}

/** The group's settings, with derived values for those that depend on the accounts. */
export interface RuntimeConfig extends Omit<typeof Groups.Runtime.Type, "key_max_inflight"> {
  readonly account_max_inflight: number
  /** Maximum queue length; 0 disables the queue. */
  readonly account_max_queue: number
  readonly global_max_inflight: number
  /** Concurrent requests of a business key without its own limit; `undefined` means unlimited. */
  readonly key_max_inflight: number | undefined
  /** Accounts multiplied by the requests that each serves concurrently, over all enabled upstreams. */
  readonly recommended_concurrency: number
  /** The configured values; `undefined` if derived from the accounts. */
  readonly configured: {
    readonly account_max_queue: number | undefined
    readonly global_max_inflight: number | undefined
  }
}

export interface AuthConfig {
  /**
   * The upstream that callers' own tokens go to: a credential that is no configured key is such a token. `undefined` where none is
   * accepted.
   */
  readonly direct_upstream: string | undefined
  /** Whether the lists of models need no credential. */
  readonly public_models: boolean
  /** Concurrent requests of callers with their own tokens. */
  readonly direct_max_inflight: number
  /** Whether added keys are kept as hashes. */
  readonly hash_keys: boolean
  /** SHA-256 digests (hex) of removed keys, newest last. They are never sent to the upstream as tokens. */
  readonly removed_keys: ReadonlyArray<string>
}

/** An entry of `upstream.models`: the id for callers, and the name on the upstream's server. */
export interface ConfiguredModel extends Model, Partial<Pick<Listing, "facts" | "hidden">> {
  readonly model: string
  /** The words in which the server reads whether and how much to think. */
  readonly thinking?: "effort" | "template" | "budget" | "none"
  /** The limit of output that a `messages` server gets if the caller has none. */
  readonly max_tokens?: number
  /** The contract of the model, in place of its upstream's. */
  readonly contract?: ServingContract
}

/** The time limits of a whole request, over all its tries. The file has them in `upstream.timeouts`. Seconds. */
export type RequestTimeouts = Pick<typeof Groups.Timeouts.Type, "queue" | "client" | "drain" | "attempts">

/** An upstream: an entry of `upstreams`, or the group `upstream`, which the file has for the one of the name `default`. */
export interface UpstreamConfig {
  readonly name: string
  readonly driver: DriverName
  /** Without a trailing slash, with the query that every call gets; empty with the embedded driver. */
  readonly base_url: string
  /** The vendor whose server it is, and where; `undefined` for a server that is as its contract says. */
  readonly server: VendorServer | undefined
  readonly models: ReadonlyArray<ConfiguredModel>
  /** The contract of completions; `undefined` for the one of the driver. */
  readonly contract: ServingContract | undefined
  readonly tools: "native" | "functions" | "prompt"
  /** The turns whose thinking is sent back to the server. */
  readonly history_reasoning: "all" | "current" | "none"
  /** What becomes of fields that the gateway does not model: all pass, none, or those of a list. */
  readonly fields: "pass" | "drop" | ReadonlyArray<string>
  /** How a reply that the caller gets as a whole is asked for. */
  readonly whole_replies: "whole" | "streamed"
  /** How long prompts stay warm, and what is done for that. */
  readonly prompt_cache: typeof Groups.UpstreamEntry.Type["prompt_cache"]
  /** Who compacts conversations of the Responses API. */
  readonly compaction: "auto" | "server" | "gateway"
  /** Which cost counts where the server tells its own; `undefined` for the server's. */
  readonly bill: "server" | "prices" | undefined
  readonly enabled: boolean
  /** Seconds. */
  readonly timeouts: typeof Groups.UpstreamEntry.Type["timeouts"]
  readonly headers: ReadonlyArray<UpstreamHeader>
  /** Whose credential it gets: an account's, the caller's own login, or that login if there is one. */
  readonly credential: "account" | "caller" | "either"
  /** The header that has an account's key, in lower case; `undefined` for the one of the driver. */
  readonly credential_header: string | undefined
  /** The headers of callers that the server gets too: names in lower case, or beginnings with a `*`. */
  readonly forward_headers: ReadonlyArray<string>
  /** Whose errors callers of the server's protocol get. */
  readonly errors: "pass" | "own"
  /** How the pool chooses among accounts with a free slot; `undefined` for `rotate`. */
  readonly choose: "rotate" | "fill_first" | "weighted" | "spend_soonest_reset" | undefined
  /** The share of each window of an account's quota that is kept for interactive keys; `undefined` for none. */
  readonly reserve: number | undefined
  /** What all of its accounts may use in windows; `undefined` without a budget. */
  readonly budgets: ReadonlyArray<KeyLimit> | undefined
  /** When callers get the server's rate-limit headers. */
  readonly rate_limit_headers: "auto" | "always" | "never"
  /** An address, which may contain a password, or `direct`; `undefined` for the environment's. */
  readonly proxy: Redacted.Redacted<string> | undefined
  readonly tls: UpstreamTls | undefined
  readonly max_inflight: number | undefined
  readonly account_max_inflight: number | undefined
  readonly account_max_queue: number | undefined
  /** The limits in effect, derived from the accounts where they are unset. */
  readonly limits: UpstreamLimits
}

/** A vendor's server, as operators name it. */
export interface VendorServer {
  readonly vendor: CloudName
  readonly place: VendorPlace
}

/** A header that goes to an upstream; its value is a secret. */
export interface UpstreamHeader {
  readonly name: string
  readonly value: Redacted.Redacted<string>
}

/** An entry of `webhooks`. */
export interface WebhookConfig {
  readonly name: string
  readonly url: string
  /** `whsec_` and the key in Base64. */
  readonly secret: Redacted.Redacted<string>
  /** Signs too while a secret changes. */
  readonly secret_previous: Redacted.Redacted<string> | undefined
  readonly headers: ReadonlyArray<UpstreamHeader>
  readonly types: ReadonlySet<NoticeType>
}

/** How many requests the pool of an upstream serves and lets wait. */
export interface UpstreamLimits {
  /** Requests that one account serves concurrently. */
  readonly perAccount: number
  /** Requests that all accounts serve concurrently. */
  readonly global: number
  /** Waiting requests; 0 disables the queue. */
  readonly queue: number
}

/** An entry of `routes`. */
export interface RouteConfigEntry {
  readonly name: string
  /** As written. */
  readonly targets: ReadonlyArray<WrittenTarget>
  /** Seconds, at most those of `request_timeouts.queue`. */
  readonly wait: number
  readonly also_on: ReadonlyArray<AlsoOn>
  readonly spread: RouteOptions["spread"]
  readonly schemas: RouteOptions["schemas"]
  /** `undefined`: as `runtime.sticky` says. */
  readonly sticky: boolean | "auto" | "target" | undefined
  /** Its words for people. */
  readonly facts?: ModelFacts
  /** True for a route that is in no list. */
  readonly hidden?: boolean
}

export type AutoDeleteMode = "none" | "single" | "all"

type SettingGroups = typeof Groups.settingGroups

/** The groups of the file, decoded. */
export type DecodedGroups =
  & { readonly [Name in keyof SettingGroups]: SettingGroups[Name]["Type"] }
  & { readonly host: typeof Groups.Host.Type }

/** The configuration in effect. Groups and fields have the names of the file. */
export interface GatewayConfig
  extends Omit<DecodedGroups, "admin" | "runtime" | "auto_delete" | "upstream" | "auth" | "model_aliases" | "limits">
{
  /** All accepted business keys: the configured ones, or the generated one. */
  readonly keys: ReadonlyArray<string>
  readonly configured_keys: ReadonlyArray<string>
  /** The key that a start without keys generated; `undefined` once a key is configured or it is removed. */
  readonly generated_key: string | undefined
  /** Permissions of keys by key id. */
  readonly key_records: KeyRecords
  readonly accounts: ReadonlyArray<Account>
  readonly account_table: AccountTable
  readonly model_aliases: ReadonlyMap<string, string>
  readonly admin: AdminConfig
  readonly runtime: RuntimeConfig
  readonly auto_delete: { readonly mode: AutoDeleteMode }
  /** All upstreams by name, in the order of the file: the group `upstream` first. */
  readonly upstreams: ReadonlyMap<string, UpstreamConfig>
  readonly request_timeouts: RequestTimeouts
  readonly routes: ReadonlyArray<RouteConfigEntry>
  /** What the names of models stand for over all upstreams. */
  readonly route_table: RouteTable
  /** Prices of models; empty without any. */
  readonly prices: PriceTable
  /** Facts of models that are set by name; empty without any. */
  readonly model_facts: NameTable<ModelFacts>
  /** Where events are sent. */
  readonly webhooks: ReadonlyArray<WebhookConfig>
  /** The currency of prices: three capital letters. */
  readonly currency: string | undefined
  readonly auth: AuthConfig
  /** Limits on data from callers and upstreams. */
  readonly limits: Limits
  /** What is valid and does not do what it says: a sentence each, which begins with a place of the file. */
  readonly warnings: ReadonlyArray<string>
}

export interface Snapshot {
  readonly raw: RawConfig
  readonly config: GatewayConfig
}
