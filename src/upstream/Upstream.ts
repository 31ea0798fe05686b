/**
 * The upstream provider as the rest of the gateway sees it. Drivers differ in protocol, not in what they yield.
 *
 * A driver holds no accounts: whoever calls it brings a credential (a lease of the pool, or a caller's own token).
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type { Conversation } from "../domain/Conversation.ts"
import type { FailureCause } from "../domain/FailureCause.ts"
import type { UpstreamEvent } from "../domain/UpstreamEvent.ts"
import type { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import type { Budget } from "./budget.ts"

/** The native model that a request resolved to. `id` is the native id, or a further id of `upstream.models`. */
export interface UpstreamModel {
  readonly id: string
  readonly reasoning: boolean
  readonly search: boolean
}

/** Login data of an account, as configured. A `mobile` is in whatever form it was configured. */
export interface Login {
  readonly email: string | undefined
  readonly mobile: string | undefined
  readonly password: string
}

/**
 * The right to call the upstream, for the length of one attempt. Tokens are plain strings here; they never leave a driver
 * but in the `Authorization` header.
 */
export interface Credential {
  /**
   * The current token; `undefined` where the upstream asks for none. Read the property when the token is needed: it may give
   * what is there at once.
   */
  readonly token: Effect.Effect<string | undefined, UpstreamFailure>
  /** Replaces `stale` by a fresh token after the upstream refused it in mid-reply; fails where that is not possible. */
  readonly renew: (stale: string | undefined) => Effect.Effect<string | undefined, UpstreamFailure>
}

/** One exchange with the upstream, as a capture records it. Headers of a request, and so its credential, are no part of it. */
export interface RoundRecorder {
  /** Called once the reply's head is there, with the HTTP status and the `content-type` header. */
  readonly opened: (status: number, contentType: string | undefined) => void
  /** The reply's bytes exactly as they came, chunk by chunk. What is to be kept must be copied. */
  readonly bytes: (chunk: Uint8Array) => void
  /** The round is over; called once, whatever ended it. `cause` says why it failed, where the network or the answer told. */
  readonly closed: (cause?: FailureCause) => void
}

/** Receives every round of a completion: the first request and each continue. Must be cheap and must not throw. */
export interface Recorder {
  readonly round: (info: {
    /** `completion` or `continue`. */
    readonly label: string
    /** What the reply's bytes are written in. */
    readonly protocol: "session" | "openai"
    readonly url: string
    readonly requestBody: string
    /** The upstream session that the round belongs to, where there is one. */
    readonly sessionId: string | undefined
    /** The token that the request goes out with, to be blotted out where the upstream repeats it; never to be shown. */
    readonly secret: Redacted.Redacted<string> | undefined
  }) => RoundRecorder
}

/** One completion to run upstream. */
export interface CompletionRequest {
  readonly model: UpstreamModel
  readonly conversation: Conversation
  readonly credential: Credential
  /** The credential is the caller's own token: nobody has vouched for the caller. */
  readonly direct?: boolean | undefined
  readonly recorder: Recorder | undefined
  /** What the request may still cost; the same for all of its attempts. A driver asks it before each call and counts into it. */
  readonly budget: Budget
  /** Told of the upstream session as soon as there is one: what comes after may fail, and the session stays behind. */
  readonly onSession?: ((sessionId: string) => Effect.Effect<void>) | undefined
  /** Told of every round after the first. */
  readonly onContinue?: (() => void) | undefined
}

/** A running completion. */
export interface CompletionReply {
  /** Id that the reply goes by: the upstream session's id, or the upstream's own completion id. */
  readonly id: string
  /** The upstream session to delete afterwards, where the upstream keeps one. */
  readonly sessionId?: string | undefined
  /**
   * The reply; ends with one `UpstreamFinish` or fails. Its chunks are those of the network. Continued rounds are part of
   * it. Ending early (interruption, or the scope's end) stops the upstream, best effort.
   */
  readonly events: Stream.Stream<UpstreamEvent, UpstreamFailure>
  /** Nothing has to be told to the upstream any more: leaving takes no time. Where it is absent, that may take a while. */
  readonly isOver?: (() => boolean) | undefined
}

/** An upstream session, as listed. */
export interface UpstreamSession {
  readonly id: string
  readonly title: string
  readonly updatedAt: number
}

/** Texts, or texts as token ids, whose vectors are asked for. */
export interface EmbeddingsRequest {
  readonly model: UpstreamModel
  readonly inputs: ReadonlyArray<string | ReadonlyArray<number>>
  /** `undefined`: as many as the model has. */
  readonly dimensions: number | undefined
  readonly token: string | undefined
}

/** A vector for each input, in their order. */
export interface EmbeddingsReply {
  readonly vectors: ReadonlyArray<ReadonlyArray<number>>
  /** Tokens of all inputs, where the upstream counts them. */
  readonly tokens: number | undefined
}

/** What each driver implements. */
export interface Driver {
  /** Shown to callers where it is `embedded`; an embedder's own driver may have any other name. */
  readonly name: string
  /** What this upstream can carry by itself; what it cannot is put into words by the driver or done by the gateway. */
  readonly capabilities: {
    /** Accounts log in with a password; else a token is all there is. */
    readonly login: boolean
    /** It keeps sessions that can be listed and deleted. */
    readonly sessions: boolean
    /** A completion needs no credential at all. */
    readonly anonymous: boolean
    /** The upstream itself ends replies at stop sequences and so on; informational. */
    readonly sampling: boolean
  }
  /**
   * Model ids beyond the four natives, in the order in which they are configured. Informational: those that callers may ask for
   * are the configuration's `upstream.models`.
   */
  readonly models: ReadonlyArray<UpstreamModel>
  /** Logs in and returns a token. */
  readonly login: (login: Login) => Effect.Effect<string, UpstreamFailure>
  /** Checks that a token works. */
  readonly verify: (token: string | undefined) => Effect.Effect<void, UpstreamFailure>
  /** Starts a completion: everything up to the reply's head, so that refusals fail here. The scope holds the connection. */
  readonly complete: (
    request: CompletionRequest
  ) => Effect.Effect<CompletionReply, UpstreamFailure, Scope.Scope>
  /** Makes embeddings, where the upstream does. */
  readonly embed?: ((request: EmbeddingsRequest) => Effect.Effect<EmbeddingsReply, UpstreamFailure>) | undefined
  readonly createSession: (token: string | undefined) => Effect.Effect<string, UpstreamFailure>
  /** Sessions of an account, `count` at most. */
  readonly listSessions: (
    token: string | undefined,
    count: number
  ) => Effect.Effect<ReadonlyArray<UpstreamSession>, UpstreamFailure>
  readonly deleteSession: (token: string | undefined, id: string) => Effect.Effect<void, UpstreamFailure>
  readonly deleteAllSessions: (token: string | undefined) => Effect.Effect<void, UpstreamFailure>
}

/** The configured upstream. The driver follows the configuration; whoever works with one keeps it for that work. */
export class Upstream extends Context.Service<Upstream, {
  /** The driver of the current configuration; the same object as long as its configuration stands. */
  readonly driver: Effect.Effect<Driver>
}>()("model-gateway/upstream/Upstream") {}
