/**
 * The upstream provider as the rest of the gateway sees it. Drivers differ in protocol and yield the same events.
 *
 * A driver has no accounts: its caller passes a credential (a lease of the pool, or a caller's own token).
 */
import type * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type { UpstreamProtocol } from "../contracts/drivers.ts"
import type { SealedRequests } from "../contracts/responses/seals.ts"
import type { ServerFields } from "../contracts/shared/Family.ts"
import type { Conversation, Sampling, Thinking } from "../domain/Conversation.ts"
import type { EmbeddingsInput, EmbeddingsReply } from "../domain/Embeddings.ts"
import type { FailureCause } from "../domain/FailureCause.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import type { ServersModel } from "../domain/routes.ts"
import type { UpstreamEvent } from "../domain/UpstreamEvent.ts"
import type { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import type { UpstreamModel } from "../domain/UpstreamModel.ts"
import type { FamilyName } from "../domain/VendorFields.ts"
import type { RequestBudget } from "./budget.ts"
import type { RequestBody } from "./ExchangeRequest.ts"
import type { LearnedRefusals } from "./server/LearnedRefusals.ts"

/** Login data of an account, as configured; `mobile` is not normalized. */
export interface Login {
  readonly email: string | undefined
  readonly mobile: string | undefined
  readonly password: string
}

/**
 * The right to call the upstream during one attempt. Tokens are plain strings here; a driver sends them in the `Authorization`
 * header only.
 */
export interface Credential {
  /**
   * The current token; `undefined` if the upstream requires no token. Read the property when the token is needed, because it may
   * be an effect that succeeds immediately.
   */
  readonly token: Effect.Effect<string | undefined, UpstreamFailure>
  /** Replaces `stale` with a new token after the upstream refused it within a reply; fails if that is impossible. */
  readonly renew: (stale: string | undefined) => Effect.Effect<string | undefined, UpstreamFailure>
}

/** Records one exchange with the upstream, by calls of its methods. Request headers, and so the credential, are not recorded. */
export interface RoundRecorder {
  /** The head of the response arrived: HTTP status and `content-type`. */
  readonly opened: (status: number, contentType: string | undefined) => void
  /** Bytes of the response as they arrived. The recorder has to copy what it keeps. */
  readonly bytes: (chunk: Uint8Array) => void
  /** The round is over; called once, whatever ended it. `cause` is the known cause of a failure. */
  readonly closed: (cause?: FailureCause) => void
}

/** Records every round of a completion: the first request and each continue. Must be cheap and must not throw. */
export interface Recorder {
  readonly round: (info: {
    /** `completion`, `continue` or `relayed`. */
    readonly label: string
    /** The protocol of the response's bytes. */
    readonly protocol: UpstreamProtocol
    readonly url: string
    readonly requestBody: string
    /** The upstream session of the round, if there is one. */
    readonly sessionId: string | undefined
    /** The token of the request, which is redacted if the upstream repeats it. */
    readonly secret: Redacted.Redacted<string> | undefined
    /** What else was sent that is secret. */
    readonly secrets: ReadonlyArray<Redacted.Redacted<string>>
  }) => RoundRecorder
}

/** The headers of a caller's request, by their names in lower case. A driver sends those that the configuration lists. */
export type CallerHeaders = Readonly<Record<string, string | undefined>>

/** One completion to run upstream. */
export interface CompletionRequest {
  readonly model: UpstreamModel
  readonly conversation: Conversation
  /** The contract that the client speaks; `undefined` for an app's own style. */
  readonly client: FamilyName | undefined
  readonly credential: Credential
  /** The credential is the caller's own token, and the caller has no gateway key. */
  readonly direct: boolean
  readonly recorder: Recorder | undefined
  readonly callerHeaders: CallerHeaders | undefined
  /** Stands for the conversation at a server's cache: 32 hex digits, apart for each caller and session. */
  readonly cacheName: (() => string) | undefined
  /** The request belongs to a session of its client. */
  readonly hasSession: boolean
  /** Tokens from which the server keeps a prompt. */
  readonly leastCached: number | undefined
  /** The caller gets the reply as a whole, so the upstream may send it as a whole too. */
  readonly isWhole: boolean
  /** The budget of the request, shared by its attempts. A driver takes each call from it and counts what arrives. */
  readonly budget: RequestBudget
  /** Receives the id of the upstream session as soon as it exists, because later steps may fail and leave it behind. */
  readonly onSession: ((sessionId: string) => Effect.Effect<void>) | undefined
  /** Receives the paths of what of the request the server has not got, and of its reply the caller, in the server's words. */
  readonly onChanged: ((paths: ReadonlyArray<string>) => void) | undefined
  /** Called for every round after the first. */
  readonly onContinue: (() => void) | undefined
}

/** A running completion. */
export interface CompletionReply {
  /** The id of the upstream session, or of the upstream's completion. */
  readonly id: string
  /** The upstream session to delete afterwards, if there is one. */
  readonly sessionId?: string | undefined
  /**
   * The reply, continued rounds included; ends with one `UpstreamFinish` or fails. Its chunks come from the network. An
   * early end (interruption, or the end of the scope) stops the upstream, best effort.
   */
  readonly events: Stream.Stream<UpstreamEvent, UpstreamFailure>
  /** The organisation of the credential, as the server says it. */
  readonly organization?: string | undefined
  /** True if the upstream needs no stop request, so that leaving takes no time. Without it, leaving may take a while. */
  readonly isOver?: (() => boolean) | undefined
}

/** An upstream session, as listed. */
export interface UpstreamSession {
  readonly id: string
  readonly title: string
  readonly updatedAt: number
}

/** A request for the vectors of texts, or of texts as token ids. */
export interface EmbeddingsRequest extends EmbeddingsInput {
  readonly model: UpstreamModel
  /** Fields of the caller's body that the gateway does not model; a driver sends those that it passes. */
  readonly fields: ServerFields | undefined
  readonly token: string | undefined
  /** The budget of the request. */
  readonly budget: RequestBudget | undefined
  readonly callerHeaders: CallerHeaders | undefined
}

/** A body that the server gets as it is. */
export interface RelayedBody {
  readonly content: RequestBody
  readonly contentType: string
  /** The length of a body that arrives while it is sent, if it is known. */
  readonly length: number | undefined
  /** What recordings keep of it; empty for pictures and sound. */
  readonly recorded: string
}

/** A request that the server gets as it is. Only the model's name is the server's own. */
export interface RelayedRequest {
  readonly model: UpstreamModel
  readonly token: string | undefined
  /** Below the address of the API's version: `/rerank`. */
  readonly path: string
  readonly accept: string
  /** Makes the body with the server's name of the model. */
  readonly body: (model: string) => RelayedBody
  readonly budget: RequestBudget
  readonly recorder: Recorder | undefined
  readonly callerHeaders: CallerHeaders | undefined
}

/** A reply that callers get as it is, once its first bytes are there and are no error. */
export interface RelayedReply {
  readonly status: number
  /** A header of the reply, by its name in lower case. */
  readonly header: (name: string) => string | undefined
  /** The bytes, of which the first ones have arrived; for one reader. */
  readonly bytes: Stream.Stream<Uint8Array, UpstreamFailure>
}

/** A conversation whose tokens the upstream counts. */
export interface CountRequest {
  readonly model: UpstreamModel
  readonly conversation: Conversation
  readonly token: string | undefined
  readonly callerHeaders: CallerHeaders | undefined
}

/** What a driver sends of what callers ask for. The gateway substitutes the rest, or `x-gateway-ignored` lists it. */
export interface Sends {
  /**
   * The contract in which the server is asked, even where it does not get requests of the contract as they were written; `undefined` if it is
   * the driver's.
   */
  readonly contract: FamilyName | undefined
  /** True for a sampling parameter that the server gets. */
  readonly sampling: (name: keyof Sampling, model: UpstreamModel, conversation: Conversation) => boolean
  /**
   * True if the server gets the caller's stop sequences and does not say which of them ended a reply.
   */
  readonly stop: (conversation: Conversation) => boolean
  /** The least limit of output, in tokens, which is sent in place of a lower one; `undefined` without one. */
  readonly leastOutput: number | undefined
  /** True if the server gets all that the caller's fields say about thinking. */
  readonly thinking: (model: UpstreamModel, thinking: Thinking, conversation?: Conversation) => boolean
  /**
   * True for a field of `Conversation.serverFields` that the server gets, which it does not where the conversation itself says something
   * else by that name.
   */
  readonly fields: (name: string, conversation?: Conversation) => boolean
  /**
   * True for a vendor's own field, or an element of a kind, that the server gets if its family is the driver's. `path` is the element's, and
   * empty for the request.
   */
  readonly vendorFields: (name: string, path: string) => boolean
}

/** What a driver sends that has only its own contract. */
export const sendsNothing: Sends = {
  contract: undefined,
  sampling: () => false,
  stop: () => false,
  leastOutput: undefined,
  thinking: () => false,
  fields: () => false,
  vendorFields: () => true
}

/** Seals of a server: what of a conversation only its maker, or not every server, can read or find. */
export interface Seals extends SealedRequests {
  /** Deletes a stored response. */
  readonly forget: (token: string | undefined, id: string) => Effect.Effect<void, UpstreamFailure>
}

/** Compactions of conversations by a server. */
export interface Compacts {
  /** The server compacts, even if other servers may have to read what it makes. */
  readonly always: boolean
  /** False while the server is known to compact nothing. `now`: monotonic milliseconds. */
  readonly works: (now: number) => boolean
  /** The server has made no compaction that it was asked for. */
  readonly failed: (now: number) => void
}

/** A server that speaks several contracts, of which one serves each request. */
export interface SpeaksContracts {
  /** All contracts that it may speak. */
  readonly all: ReadonlyArray<FamilyName>
  /**
   * The driver of the contract that serves a request. `now`: monotonic milliseconds. After a failure that says that the server lacks the contract
   * it is another one.
   */
  readonly choose: (model: UpstreamModel, conversation: Conversation, now: number) => Driver
  /** Learns what `choose` depends on, in bounded time. */
  readonly prepare: (token: string | undefined, now: number) => Effect.Effect<void>
}

/** The contract in which a driver's server is asked. */
export const askedBy = ({ contract, sends }: Pick<Driver, "contract" | "sends">): FamilyName | undefined =>
  contract ?? sends.contract

/** What of a driver is its contract's own. A server with several contracts has one for each. */
export type ServedContract = Pick<Driver, "contract" | "sends" | "complete" | "capabilities">

/** The driver of the contract that serves a request. `now`: monotonic milliseconds. */
export const servingDriver = (driver: Driver, model: UpstreamModel, conversation: Conversation, now: number): Driver =>
  driver.capabilities.contracts?.choose(model, conversation, now) ?? driver

/** The sessions of an account that the upstream keeps. */
export interface KeepsSessions {
  readonly create: (token: string | undefined) => Effect.Effect<string, UpstreamFailure>
  /** Sessions of an account, `count` at most. */
  readonly list: (
    token: string | undefined,
    count: number
  ) => Effect.Effect<ReadonlyArray<UpstreamSession>, UpstreamFailure>
  readonly delete: (token: string | undefined, id: string) => Effect.Effect<void, UpstreamFailure>
  readonly deleteAll: (token: string | undefined) => Effect.Effect<void, UpstreamFailure>
}

/** Logs in and returns a token. Accounts of other drivers have a token only. */
export type LogsIn = (login: Login) => Effect.Effect<string, UpstreamFailure>

/** Reads the server's own names of its models, each with what the list says about it; bounded in number, bytes and time. */
export type ListsModels = (token: string | undefined) => Effect.Effect<ReadonlyArray<ServersModel>, UpstreamFailure>

/** Counts the tokens of a conversation. */
export type Counts = (request: CountRequest) => Effect.Effect<number, UpstreamFailure>

/** Makes the vectors of texts. */
export type Embeds = (request: EmbeddingsRequest) => Effect.Effect<EmbeddingsReply, UpstreamFailure>

/**
 * Relays a request of another endpoint of the vendor's, if the server may have it. Fails with the error of a body that turns out to be wrong
 * while it is sent. The scope owns the connection.
 */
export type Relays = (
  request: RelayedRequest
) => Effect.Effect<RelayedReply, UpstreamFailure | GatewayError, Scope.Scope>

/** The same driver over an account's own proxy: an address or `direct`. */
export type GoesThrough = (proxy: Redacted.Redacted<string>) => Driver

/** What some drivers can do beside completions. */
interface AllCapabilities {
  readonly contracts: SpeaksContracts
  readonly seals: Seals
  /** Without it the gateway makes all compactions. */
  readonly compaction: Compacts
  readonly sessions: KeepsSessions
  readonly login: LogsIn
  readonly listModels: ListsModels
  readonly countTokens: Counts
  readonly embed: Embeds
  readonly relay: Relays
  /** What the server has refused of requests for its models, and is not sent for a while. */
  readonly refusals: LearnedRefusals
  /** Drivers that call no server have none. */
  readonly withProxy: GoesThrough
}

/** The capabilities of one driver. What it lacks is absent. */
export type Capabilities = { readonly [Name in keyof AllCapabilities]?: AllCapabilities[Name] | undefined }

/** What each driver implements. */
export interface Driver {
  /** Callers see the name `embedded`; other drivers may have any other name. */
  readonly name: string
  /**
   * The vendor contract that the driver speaks, whose `VendorFields` it sends back word for word; `undefined` for the session protocol and for
   * an app's own.
   */
  readonly contract: FamilyName | undefined
  /** A completion needs no credential. */
  readonly isAnonymous: boolean
  readonly sends: Sends
  /**
   * Model ids beyond the four native ones, in configured order. Informational: callers may use those of `upstream.models`.
   */
  readonly models: ReadonlyArray<UpstreamModel>
  /** Sent beside the account's credential. They are removed where the upstream's words are quoted. */
  readonly secrets: ReadonlyArray<Redacted.Redacted<string>>
  readonly capabilities: Capabilities
  /** Checks that a token works. */
  readonly verify: (token: string | undefined) => Effect.Effect<void, UpstreamFailure>
  /** Starts a completion and waits for the head of the response, so that refusals fail here. The scope owns the connection. */
  readonly complete: (
    request: CompletionRequest
  ) => Effect.Effect<CompletionReply, UpstreamFailure, Scope.Scope>
}
