/**
 * The `session` driver: a provider that speaks the session protocol over HTTP (upstream-protocol).
 */
import * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as Scope from "effect/Scope"
import { nationalMobile } from "../../domain/identity.ts"
import { UpstreamFailure } from "../../domain/UpstreamFailure.ts"
import type { ConnectionLimits } from "../connection.ts"
import type { CompletionRequest, Driver, Login, UpstreamModel, UpstreamSession } from "../Upstream.ts"
import { makeCalls } from "./calls.ts"
import type { MessageId, ReplyDecoder } from "./decodeReply.ts"
import { isRecord, type JsonRecord } from "./patchDocument.ts"
import { renderPrompt } from "./prompt.ts"
import { replyEvents, type Round } from "./reply.ts"

/** What the driver needs to know of its provider. */
export interface SessionOptions {
  readonly name: "session" | "embedded"
  /** Without a trailing slash. */
  readonly baseUrl: string
  /** Ids that are served beyond the natives. */
  readonly furtherModels: ReadonlyArray<UpstreamModel>
  readonly limits: ConnectionLimits
  /** A completion needs no account of its own. */
  readonly anonymous: boolean
}

/** Time for `stop_stream` when a reply is left early (behaviour §7). */
const stopTime = "2 seconds"

const paths = {
  login: "/api/v0/users/login",
  current: "/api/v0/users/current",
  createSession: "/api/v0/chat_session/create",
  listSessions: "/api/v0/chat_session/fetch_page",
  deleteSession: "/api/v0/chat_session/delete",
  deleteAllSessions: "/api/v0/chat_session/delete_all",
  completion: "/api/v0/chat/completion",
  continue: "/api/v0/chat/continue",
  stop: "/api/v0/chat/stop_stream"
} as const

const textOf = (value: unknown): string | undefined => typeof value === "string" && value !== "" ? value : undefined

const sessionOf = (value: unknown): ReadonlyArray<UpstreamSession> => {
  if (!isRecord(value)) return []
  const { id, title, updated_at: updatedAt } = value
  if (typeof id !== "string") return []
  return [{ id, title: textOf(title) ?? "", updatedAt: typeof updatedAt === "number" ? updatedAt : 0 }]
}

/** Makes the driver over a client. */
export const makeSessionDriver = (client: HttpClient.HttpClient, options: SessionOptions): Driver => {
  const { call, open } = makeCalls(client, options.baseUrl, options.limits)

  const login = Effect.fn("SessionDriver.login")(function*({ email, mobile, password }: Login) {
    const who: JsonRecord = email === undefined
      ? { mobile: nationalMobile(mobile ?? "") }
      : { email }
    const data = yield* call("login", paths.login, undefined, {
      ...who,
      password,
      device_id: "model-gateway",
      os: "web"
    })
    const token = isRecord(data["user"]) ? textOf(data["user"]["token"]) : undefined
    return token ?? (yield* new UpstreamFailure({ phase: "login", kind: "malformed" }))
  })

  const createSession = Effect.fnUntraced(function*(token: string | undefined) {
    const data = yield* call("session", paths.createSession, token, { agent: "chat" })
    return textOf(data["id"]) ?? (yield* new UpstreamFailure({ phase: "session", kind: "malformed" }))
  })

  const complete = Effect.fnUntraced(function*({ conversation, credential, model, recorder }: CompletionRequest) {
    const scope = yield* Effect.scope
    let token = yield* credential.token
    const sessionId = yield* createSession(token)
    const body = JSON.stringify({
      chat_session_id: sessionId,
      parent_message_id: null,
      prompt: renderPrompt(conversation),
      ref_file_ids: [],
      thinking_enabled: model.reasoning,
      search_enabled: model.search
    })

    const openRound = Effect.fnUntraced(function*(label: "completion" | "continue", requestBody: string) {
      const path = paths[label]
      const recording = recorder?.round({ label, url: `${options.baseUrl}${path}`, requestBody, sessionId })
      if (recording !== undefined) yield* Effect.addFinalizer(() => Effect.sync(() => recording.closed()))
      const phase = label === "completion" ? "completion" : "resume"
      const connection = yield* open(phase, path, token, requestBody, recording?.opened)
      const round: Round = { connection, record: recording?.bytes }
      return round
    })

    const nextRound = (message: MessageId) => {
      const request = JSON.stringify({ chat_session_id: sessionId, message_id: message, fallback_to_resume: true })
      return openRound("continue", request).pipe(
        Effect.catch((failure) =>
          tokenRefused(failure)
            ? Effect.flatMap(credential.renew(token), (fresh) => {
              token = fresh
              return openRound("continue", request)
            })
            : Effect.fail(failure)
        )
      )
    }

    let decoder: ReplyDecoder | undefined
    let running = true
    // Added before the connection, so that it runs after the connection was closed.
    yield* Effect.addFinalizer(() =>
      Effect.suspend(() => {
        const message = decoder?.messageId
        if (!running || message === undefined) return Effect.void
        return call("stream", paths.stop, token, { chat_session_id: sessionId, message_id: message }).pipe(
          Effect.timeoutOption(stopTime),
          Effect.ignore
        )
      })
    )
    const firstScope = yield* Scope.fork(scope)
    const first = yield* Scope.provide(openRound("completion", body), firstScope)
    return {
      id: sessionId,
      sessionId,
      events: replyEvents({
        first,
        firstScope,
        next: nextRound,
        started: (started) => {
          decoder = started
        },
        ended: () => {
          running = false
        }
      })
    }
  })

  return {
    name: options.name,
    capabilities: { login: true, sessions: true, anonymous: options.anonymous, sampling: false },
    models: options.furtherModels,
    login,
    verify: (token) => Effect.asVoid(call("session", paths.current, token)),
    complete,
    createSession,
    listSessions: (token, count) =>
      Effect.map(call("session", `${paths.listSessions}?count=${count}`, token), (data) => {
        const sessions = data["chat_sessions"]
        return Array.isArray(sessions) ? sessions.flatMap(sessionOf) : []
      }),
    deleteSession: (token, id) => Effect.asVoid(call("session", paths.deleteSession, token, { chat_session_id: id })),
    deleteAllSessions: (token) => Effect.asVoid(call("session", paths.deleteAllSessions, token, {}))
  }
}

const tokenRefused = (failure: UpstreamFailure): boolean =>
  failure.status === 401 || failure.code === 40001 || failure.code === 40002 || failure.code === 40003
