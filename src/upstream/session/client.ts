/**
 * The calls of the session protocol over HTTP: requests, envelopes, failures as facts (upstream-protocol, "Calls").
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { type EnvelopeFacts, readEnvelope } from "../../contracts/session/envelope.ts"
import { readRefusal } from "../../contracts/session/errors.ts"
import type { MessageId } from "../../contracts/session/readReply.ts"
import { nationalMobile } from "../../domain/identity.ts"
import { isRecord, type JsonRecord } from "../../domain/json.ts"
import { serverAddress } from "../../domain/serverAddress.ts"
import { type FailurePhase, UpstreamFailure } from "../../domain/UpstreamFailure.ts"
import type { RequestBudget } from "../budget.ts"
import { type Exchange, type ExchangeLimits, type Exchanges, secretsWith } from "../Exchange.ts"
import type { ExchangeRequest } from "../ExchangeRequest.ts"
import { retryAfterOf } from "../retryAfter.ts"
import type { Login, RoundRecorder, UpstreamSession } from "../Upstream.ts"

/** A call that answers with an event stream. */
export interface StreamCall {
  readonly path: "chat/completion" | "chat/continue"
  readonly phase: FailurePhase
  readonly body: string
  readonly token: string | undefined
  readonly round: RoundRecorder | undefined
  readonly budget: RequestBudget
}

/** The count of the first list request; most accounts have fewer sessions. */
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
  /** Sends a call that answers with an event stream. The caller has to call `leave` on the exchange. */
  readonly startStream: (call: StreamCall) => Effect.Effect<Exchange>
  /** Waits for the head of the stream; a refusal fails here. */
  readonly opened: <A>(exchange: Exchange, call: StreamCall, value: A) => Effect.Effect<A, UpstreamFailure>
}

/** The most characters of a token, and of an id. */
const longestToken = 8 * 1024
const longestId = 256

/** Bytes that are read of an answer other than a stream. */
const longestBody = 1024 * 1024
/** Milliseconds that an answer in place of a stream may take. */
const slowestRefusal = 5_000

const eventStream = /^text\/event-stream\b/i

const malformed = (phase: FailurePhase) => new UpstreamFailure({ phase, kind: "malformed" })

/** The token that a request goes out with. */
const tokenIn = ({ headers }: ExchangeRequest): string | undefined => headers["authorization"]?.slice("Bearer ".length)

/** Makes the client. `baseUrl` is without a trailing slash. */
export const makeSessionClient = (
  exchanges: Exchanges["Service"],
  baseUrl: string,
  limits: ExchangeLimits
): SessionClient => {
  const deviceId = crypto.randomUUID()
  const { base, origin, pathOf } = serverAddress(baseUrl)
  const url = (path: string) => `${origin}${base}/api/v0/${path}`

  const refusal = (
    phase: FailurePhase,
    exchange: Exchange,
    facts: EnvelopeFacts,
    body: string,
    token: string | undefined
  ): Effect.Effect<never, UpstreamFailure> =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const retryAfter = retryAfterOf((name) => exchange.header(name), now)
      return Effect.fail(
        new UpstreamFailure({
          phase,
          status: exchange.status,
          ...readRefusal(phase, facts),
          ...(retryAfter === undefined ? {} : { retryAfter }),
          ...(facts.kind === "malformed" && !/^\s*[{[]/.test(body)
            ? { cause: exchange.unexpectedAnswer(body, secretsWith(exchanges, token === undefined ? [] : [token])) }
            : {})
        })
      )
    })

  const requestOf = (
    method: ExchangeRequest["method"],
    path: string,
    token: string | undefined,
    accept: string,
    body?: string
  ): ExchangeRequest => ({
    method,
    origin,
    path: pathOf(`/api/v0/${path}`),
    headers: {
      accept,
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { "content-type": "application/json" })
    },
    body,
    connection: undefined,
    sign: undefined
  })

  /** A whole call. The body is read to its end, which keeps the connection usable. */
  const call = <A>(
    phase: FailurePhase,
    request: ExchangeRequest,
    read: (data: JsonRecord) => Effect.Effect<A, UpstreamFailure>
  ): Effect.Effect<A, UpstreamFailure> =>
    Effect.flatMap(
      exchanges.start(request, { phase, limits, isWhole: false, budget: undefined }),
      (exchange) =>
        Effect.flatMap(exchange.answer(longestBody, limits.silence), (body) => {
          exchange.leave()
          const envelope = readEnvelope(exchange.status, body)
          return envelope._tag === "Accepted"
            ? read(envelope.data)
            : refusal(phase, exchange, envelope.facts, body, tokenIn(request))
        })
    )

  const post = (phase: FailurePhase, path: string, token: string | undefined, body: JsonRecord) =>
    call(
      phase,
      requestOf("POST", path, token, "application/json", JSON.stringify(body)),
      (data) => Effect.succeed(data)
    )

  const get = (path: string, token: string | undefined) =>
    call("session", requestOf("GET", path, token, "application/json"), (data) => Effect.succeed(data))

  const login = Effect.fnUntraced(function*({ email, mobile, password }: Login) {
    const identity = email === undefined ? { mobile: nationalMobile(mobile ?? "") } : { email: email.trim() }
    const body = { ...identity, password, device_id: deviceId, os: "web" }
    const { user } = yield* post("login", "users/login", undefined, body)
    const token = isRecord(user) ? user["token"] : undefined
    return typeof token === "string" && token !== "" && token.length <= longestToken ? token : yield* malformed("login")
  })

  const createSession = (token: string | undefined) =>
    call(
      "session",
      requestOf("POST", "chat_session/create", token, "application/json", JSON.stringify({ agent: "chat" })),
      ({ id }) =>
        typeof id === "string" && id !== "" && id.length <= longestId
          ? Effect.succeed(id)
          : Effect.fail(malformed("session"))
    )

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

  /** The protocol has no cursor: asks for longer lists while they have more sessions. */
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

  const startStream = ({ body, budget, path, phase, token }: StreamCall) =>
    exchanges.start(requestOf("POST", path, token, "text/event-stream", body), {
      phase,
      limits,
      budget,
      isWhole: false
    })

  const opened = <A>(exchange: Exchange, { phase, round, token }: StreamCall, value: A) =>
    Effect.flatMap(exchange.head, () => {
      const { status } = exchange
      const contentType = exchange.header("content-type")
      round?.opened(status, contentType)
      if (status < 300 && eventStream.test(contentType ?? "")) return Effect.succeed(value)
      return Effect.flatMap(exchange.text(longestBody, slowestRefusal), (body) => {
        round?.bytes(Buffer.from(body))
        const envelope = readEnvelope(status, body)
        const facts: EnvelopeFacts = envelope._tag === "Refused" ? envelope.facts : { kind: "malformed" }
        return refusal(phase, exchange, facts, body, token)
      })
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
    startStream,
    opened
  }
}
