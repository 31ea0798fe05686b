/**
 * Completions of the session protocol. Each has its own session and may take several rounds. The end of its scope stops it upstream.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import { startCooperatively } from "../../config/clock/cooperative.ts"
import type { MessageId } from "../../contracts/session/readReply.ts"
import { renderPrompt } from "../../contracts/session/writeRequest.ts"
import type { UpstreamFailure } from "../../domain/UpstreamFailure.ts"
import type { Exchanges } from "../Exchange.ts"
import type { CompletionReply, CompletionRequest, Credential, Driver } from "../Upstream.ts"
import type { SessionClient, StreamCall } from "./client.ts"
import { type Round, SessionContinuations } from "./SessionContinuations.ts"

/** Milliseconds that a stop request may take (behaviour, "The pool"). */
const longestStop = 2_000

const isTokenRefusal = ({ refusal, status }: UpstreamFailure): boolean => refusal === "token" || status === 401

/** Makes the completions of a driver. `secrets` are sent beside the account's credential. */
export const makeCompletions = (
  client: SessionClient,
  secrets: Exchanges["Service"]["secrets"]
): Driver["complete"] => {
  /** Sends the call of a round and waits for the head of its response; `begun` receives the round before that. */
  const openRound = (
    { budget, recorder }: CompletionRequest,
    sessionId: string,
    call: Pick<StreamCall, "path" | "phase" | "body" | "token">,
    begun: (round: Round) => void
  ): Effect.Effect<Round, UpstreamFailure> => {
    if (!budget.takeCall()) return Effect.fail(budget.noCallLeft(call.phase))
    const capture = recorder?.round({
      label: call.path === "chat/completion" ? "completion" : "continue",
      protocol: "session",
      url: client.url(call.path),
      requestBody: call.body,
      sessionId,
      secret: call.token === undefined ? undefined : Redacted.make(call.token),
      secrets
    })
    const whole = { ...call, budget, round: capture }
    return Effect.flatMap(client.startStream(whole), (exchange) => {
      const round: Round = { exchange, recorder: capture }
      begun(round)
      return client.opened(exchange, whole, round)
    })
  }

  /** Continues a message. A token that has expired is renewed once. */
  const openContinue = (
    request: CompletionRequest,
    sessionId: string,
    messageId: MessageId,
    begun: (round: Round) => void
  ): Effect.Effect<Round, UpstreamFailure> => {
    const { credential } = request
    const body = JSON.stringify({ chat_session_id: sessionId, message_id: messageId, fallback_to_resume: true })
    const open = (token: string | undefined) =>
      openRound(request, sessionId, { path: "chat/continue", phase: "resume", body, token }, begun)
    return Effect.flatMap(
      credential.token,
      (token) =>
        Effect.catch(
          open(token),
          (failure) => isTokenRefusal(failure) ? Effect.flatMap(credential.renew(token), open) : Effect.fail(failure)
        )
    )
  }

  /** Asks the upstream to stop, best effort. */
  const stop = (credential: Credential, sessionId: string, messageId: MessageId): Effect.Effect<void> =>
    credential.token.pipe(
      Effect.flatMap((token) => client.stopStream(token, sessionId, messageId)),
      Effect.interruptible,
      Effect.timeoutOption(longestStop),
      Effect.ignore
    )

  const completeIn = (
    request: CompletionRequest,
    sessionId: string,
    token: string | undefined,
    scope: Scope.Scope
  ): Effect.Effect<CompletionReply, UpstreamFailure> => {
    const { conversation, credential, model, onContinue } = request
    const rounds = new SessionContinuations(request.budget, (messageId, begun) => {
      onContinue?.()
      return openContinue(request, sessionId, messageId, begun)
    })
    // Added before the first round is sent, so that every end of the scope stops it.
    const leave = Effect.suspend(() => {
      rounds.abandon()
      const messageId = rounds.unfinished()
      return messageId === undefined ? Effect.void : stop(credential, sessionId, messageId)
    })
    const begin = (prompt: string) => {
      const body = JSON.stringify({
        chat_session_id: sessionId,
        parent_message_id: null,
        prompt,
        ref_file_ids: [],
        thinking_enabled: model.reasoning === true,
        search_enabled: model.search
      })
      const call = { path: "chat/completion", phase: "completion", body, token } as const
      return Effect.map(
        openRound(request, sessionId, call, rounds.begun),
        (first) => ({
          id: sessionId,
          sessionId,
          events: rounds.events(first),
          isOver: rounds.isOver
        })
      )
    }
    return Effect.flatMap(
      Scope.addFinalizer(scope, leave),
      () => Effect.flatMapEager(startCooperatively(renderPrompt(conversation)), begin)
    )
  }

  return (request) => {
    const { budget, credential, onSession } = request
    return Effect.flatMapEager(credential.token, (token) => {
      budget.startReply()
      // The document of its patches keeps the whole text.
      budget.keepReply()
      if (!budget.takeCall()) return Effect.fail(budget.noCallLeft("session"))
      return Effect.flatMap(client.createSession(token), (sessionId) => {
        const goOn = Effect.withFiber<CompletionReply, UpstreamFailure, Scope.Scope>((fiber) =>
          completeIn(request, sessionId, token, Context.getUnsafe(fiber.context, Scope.Scope))
        )
        return onSession === undefined ? goOn : Effect.flatMapEager(onSession(sessionId), () => goOn)
      })
    })
  }
}
