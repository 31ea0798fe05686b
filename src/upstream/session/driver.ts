/**
 * The `session` driver: a provider that speaks the session protocol over HTTP.
 *
 * A completion runs in a session of its own. Whatever ends its scope leaves nothing running upstream.
 */
import * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import { inSlices } from "../../config/inSlices.ts"
import type { UpstreamFailure } from "../../domain/UpstreamFailure.ts"
import type { Budget } from "../budget.ts"
import type { ConnectionLimits } from "../connection.ts"
import type { CompletionReply, CompletionRequest, Credential, Driver, Recorder, UpstreamModel } from "../Upstream.ts"
import { makeSessionClient, type SessionClient, type StreamCall } from "./client.ts"
import type { MessageId } from "./decodeReply.ts"
import { renderPrompt } from "./prompt.ts"
import { type Round, runRounds } from "./rounds.ts"

/** What the driver needs to know of its provider. */
export interface SessionOptions {
  /** Without a trailing slash. */
  readonly baseUrl: string
  /** Ids that are listed and served beyond the natives. */
  readonly furtherModels: ReadonlyArray<UpstreamModel>
  readonly limits: ConnectionLimits
}

/** How long the upstream may take to hear that a reply is no longer wanted, in milliseconds (behaviour, "The pool"). */
const longestStop = 2_000

const isTokenRefusal = ({ code, status }: UpstreamFailure): boolean =>
  code === 40001 || code === 40002 || code === 40003 || status === 401

/** Opens one round and tells the recorder of it. */
const openRound = Effect.fnUntraced(function*(
  client: SessionClient,
  recorder: Recorder | undefined,
  sessionId: string,
  call: Omit<StreamCall, "round"> & { readonly budget: Budget }
) {
  if (!call.budget.takeCall()) return yield* call.budget.noCallLeft(call.phase)
  const label = call.path === "chat/completion" ? "completion" : "continue"
  const round = recorder?.round({
    label,
    protocol: "session",
    url: client.url(call.path),
    requestBody: call.body,
    sessionId,
    secret: call.token === undefined ? undefined : Redacted.make(call.token)
  })
  if (round !== undefined) yield* Effect.addFinalizer(() => Effect.sync(() => round.closed()))
  const connection = yield* client.openStream({ ...call, round })
  const opened: Round = { connection, recorder: round }
  return opened
})

/** Continues a message. A token that has expired meanwhile is renewed once. */
const openContinue =
  (client: SessionClient, recorder: Recorder | undefined, credential: Credential, sessionId: string, budget: Budget) =>
  (messageId: MessageId) => {
    const body = JSON.stringify({ chat_session_id: sessionId, message_id: messageId, fallback_to_resume: true })
    const open = (token: string | undefined) =>
      openRound(client, recorder, sessionId, { path: "chat/continue", phase: "resume", body, token, budget })
    return Effect.flatMap(
      credential.token,
      (token) =>
        Effect.catch(
          open(token),
          (failure) => isTokenRefusal(failure) ? Effect.flatMap(credential.renew(token), open) : Effect.fail(failure)
        )
    )
  }

/** Makes the driver. */
export const makeSessionDriver = (http: HttpClient.HttpClient, options: SessionOptions): Driver => {
  const client = makeSessionClient(http, options.baseUrl, options.limits)

  const complete = Effect.fnUntraced(function*(
    { budget, conversation, credential, model, onContinue, onSession, recorder }: CompletionRequest
  ): Effect.fn.Return<CompletionReply, UpstreamFailure, Scope.Scope> {
    const scope = yield* Effect.scope
    const token = yield* credential.token
    budget.startReply()
    if (!budget.takeCall()) return yield* budget.noCallLeft("session")
    const sessionId = yield* client.createSession(token)
    if (onSession !== undefined) yield* onSession(sessionId)
    let unfinished = (): MessageId | undefined => undefined
    // Closed after the connections, which are opened later.
    yield* Effect.addFinalizer(() => {
      const messageId = unfinished()
      if (messageId === undefined) return Effect.void
      return credential.token.pipe(
        Effect.flatMap((token) => client.stopStream(token, sessionId, messageId)),
        Effect.interruptible,
        Effect.timeoutOption(longestStop),
        Effect.ignore
      )
    })
    const firstScope = yield* Scope.fork(scope)
    const prompt = yield* inSlices(renderPrompt(conversation))
    const body = JSON.stringify({
      chat_session_id: sessionId,
      parent_message_id: null,
      prompt,
      ref_file_ids: [],
      thinking_enabled: model.reasoning,
      search_enabled: model.search
    })
    const first = yield* openRound(client, recorder, sessionId, {
      path: "chat/completion",
      phase: "completion",
      body,
      token,
      budget
    }).pipe(Scope.provide(firstScope))
    const goOn = openContinue(client, recorder, credential, sessionId, budget)
    const running = runRounds(first, firstScope, scope, (messageId) => {
      onContinue?.()
      return goOn(messageId)
    }, budget)
    unfinished = running.unfinished
    return { id: sessionId, sessionId, events: running.events }
  })

  return {
    name: "session",
    capabilities: { login: true, sessions: true, anonymous: false, sampling: false },
    models: options.furtherModels,
    login: client.login,
    verify: client.verify,
    complete,
    createSession: client.createSession,
    listSessions: client.listSessions,
    deleteSession: client.deleteSession,
    deleteAllSessions: client.deleteAllSessions
  }
}
