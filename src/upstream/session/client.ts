/**
 * The calls of the session protocol over HTTP: requests, envelopes, failures as facts (upstream-protocol, "Calls").
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { nationalMobile } from "../../domain/identity.ts"
import { type FailurePhase, UpstreamFailure } from "../../domain/UpstreamFailure.ts"
import type { Budget } from "../budget.ts"
import {
  type Connection,
  type ConnectionLimits,
  openConnection,
  parseRetryAfter,
  readBody,
  readShortBody
} from "../connection.ts"
import type { Login, RoundRecorder, UpstreamSession } from "../Upstream.ts"
import type { MessageId } from "./decodeReply.ts"
import { readEnvelope, type RefusalFacts } from "./envelope.ts"
import { isRecord, type JsonRecord } from "./patchDocument.ts"

/** A call that answers with an event stream. */
export interface StreamCall {
  readonly path: "chat/completion" | "chat/continue"
  readonly phase: FailurePhase
  readonly body: string
  readonly token: string | undefined
  readonly round: RoundRecorder | undefined
  readonly budget: Budget
}

/** Sessions that are asked for first; most accounts have fewer. */
const sessionsAtOnce = 100

/** The calls. Tokens are sent in the `Authorization` header and nowhere else. */
export interface SessionClient {
  readonly url: (path: string) => string
  readonly login: (login: Login) => Effect.Effect<string, UpstreamFailure>
  readonly verify: (token: string | undefined) => Effect.Effect<void, UpstreamFailure>
  readonly createSession: (token: string | undefined) => Effect.Effect<string, UpstreamFailure>
  readonly listSessions: (
    token: string | undefined,
    count: number
  ) => Effect.Effect<ReadonlyArray<UpstreamSession>, UpstreamFailure>
  readonly deleteSession: (token: string | undefined, id: string) => Effect.Effect<void, UpstreamFailure>
  readonly deleteAllSessions: (token: string | undefined) => Effect.Effect<void, UpstreamFailure>
  readonly stopStream: (
    token: string | undefined,
    sessionId: string,
    messageId: MessageId
  ) => Effect.Effect<void, UpstreamFailure>
  /** Opens an event stream; a refusal fails here. The scope holds the connection. */
  readonly openStream: (call: StreamCall) => Effect.Effect<Connection, UpstreamFailure, Scope.Scope>
}

/** The most characters of a token, and of an id. */
const longestToken = 8 * 1024
const longestId = 256

/** The most that is read of an answer that is no stream, in bytes. */
const longestBody = 1024 * 1024
/** How long an answer in the place of a stream may take, in milliseconds. */
const slowestRefusal = 5_000

const eventStream = /^text\/event-stream\b/i

const malformed = (phase: FailurePhase) => new UpstreamFailure({ phase, kind: "malformed" })

/** Makes the client. `baseUrl` is without a trailing slash. */
export const makeSessionClient = (
  client: HttpClient.HttpClient,
  baseUrl: string,
  limits: ConnectionLimits
): SessionClient => {
  const deviceId = crypto.randomUUID()
  const url = (path: string) => `${baseUrl}/api/v0/${path}`

  const refusal = Effect.fnUntraced(function*(phase: FailurePhase, { response }: Connection, facts: RefusalFacts) {
    const retryAfter = parseRetryAfter(response.headers["retry-after"], yield* Clock.currentTimeMillis)
    return yield* new UpstreamFailure({
      phase,
      status: response.status,
      ...facts,
      ...(retryAfter === undefined ? {} : { retryAfter })
    })
  })

  const authorized = (request: HttpClientRequest.HttpClientRequest, token: string | undefined) =>
    token === undefined ? request : HttpClientRequest.bearerToken(request, token)

  /** A whole call. The body is read to its end, which keeps the connection usable. */
  const call = Effect.fnUntraced(function*(
    phase: FailurePhase,
    request: HttpClientRequest.HttpClientRequest
  ): Effect.fn.Return<JsonRecord, UpstreamFailure, Scope.Scope> {
    const connection = yield* openConnection(client, request, phase, limits)
    const body = yield* readBody(connection, longestBody, limits.silence)
    const envelope = readEnvelope(connection.response.status, body)
    return envelope._tag === "Accepted" ? envelope.data : yield* refusal(phase, connection, envelope.facts)
  }, Effect.scoped)

  const post = (phase: FailurePhase, path: string, token: string | undefined, body: JsonRecord) =>
    call(
      phase,
      authorized(
        HttpClientRequest.post(url(path), { acceptJson: true }).pipe(
          HttpClientRequest.bodyText(JSON.stringify(body), "application/json")
        ),
        token
      )
    )

  const get = (path: string, token: string | undefined) =>
    call("session", authorized(HttpClientRequest.get(url(path), { acceptJson: true }), token))

  const login = Effect.fnUntraced(function*({ email, mobile, password }: Login) {
    const identity = email === undefined ? { mobile: nationalMobile(mobile ?? "") } : { email: email.trim() }
    const body = { ...identity, password, device_id: deviceId, os: "web" }
    const { user } = yield* post("login", "users/login", undefined, body)
    const token = isRecord(user) ? user["token"] : undefined
    return typeof token === "string" && token !== "" && token.length <= longestToken ? token : yield* malformed("login")
  })

  const createSession = Effect.fnUntraced(function*(token: string | undefined) {
    const { id } = yield* post("session", "chat_session/create", token, { agent: "chat" })
    return typeof id === "string" && id !== "" && id.length <= longestId ? id : yield* malformed("session")
  })

  const firstSessions = Effect.fnUntraced(function*(token: string | undefined, count: number) {
    const { chat_sessions: sessions, has_more } = yield* get(`chat_session/fetch_page?count=${count}`, token)
    if (!Array.isArray(sessions)) return yield* malformed("session")
    const listed = sessions.flatMap((session): ReadonlyArray<UpstreamSession> => {
      if (!isRecord(session) || typeof session["id"] !== "string" || session["id"].length > longestId) return []
      const { id, title, updated_at: updatedAt } = session
      return [{
        id,
        title: typeof title === "string" ? title : "",
        updatedAt: typeof updatedAt === "number" ? updatedAt : 0
      }]
    })
    return { listed, more: has_more === true }
  })

  /** The protocol has no cursor: where there are more, more are asked for, as long as that brings any. */
  const listSessions = Effect.fnUntraced(function*(token: string | undefined, count: number) {
    let asked = Math.min(count, sessionsAtOnce)
    let page = yield* firstSessions(token, asked)
    while (page.more && asked < count) {
      asked = Math.min(count, asked * 10)
      const longer = yield* Effect.orElseSucceed(firstSessions(token, asked), () => page)
      if (longer.listed.length <= page.listed.length) break
      page = longer
    }
    return page.listed
  })

  const openStream = Effect.fnUntraced(function*({ body, budget, path, phase, round, token }: StreamCall) {
    const request = HttpClientRequest.post(url(path), { acceptJson: false }).pipe(
      HttpClientRequest.setHeader("accept", "text/event-stream"),
      HttpClientRequest.bodyText(body, "application/json")
    )
    const connection = yield* openConnection(client, authorized(request, token), phase, limits, budget)
    const { headers, status } = connection.response
    round?.opened(status, headers["content-type"])
    if (status < 300 && eventStream.test(headers["content-type"] ?? "")) return connection
    const recorded = round === undefined ? connection : {
      ...connection,
      bytes: Stream.map(connection.bytes, (chunk) => {
        round.bytes(chunk)
        return chunk
      })
    }
    const envelope = readEnvelope(status, yield* readShortBody(recorded, longestBody, slowestRefusal))
    const facts: RefusalFacts = envelope._tag === "Refused" ? envelope.facts : { kind: "malformed" }
    return yield* refusal(phase, connection, facts)
  })

  return {
    url,
    login,
    verify: (token) => Effect.asVoid(get("users/current", token)),
    createSession,
    listSessions,
    deleteSession: (token, id) => Effect.asVoid(post("session", "chat_session/delete", token, { chat_session_id: id })),
    deleteAllSessions: (token) => Effect.asVoid(post("session", "chat_session/delete_all", token, {})),
    stopStream: (token, sessionId, messageId) =>
      Effect.asVoid(
        post("stream", "chat/stop_stream", token, { chat_session_id: sessionId, message_id: messageId })
      ),
    openStream
  }
}
