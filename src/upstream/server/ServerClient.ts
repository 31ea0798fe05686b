/**
 * The calls of a driver whose server answers one HTTP request with one reply: the request, its recording, and refusals as failures.
 * The drivers of the vendors' protocols share it and differ in addresses, headers, bodies and decoders.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { keyless } from "../../config/Account.ts"
import { startCooperatively } from "../../config/clock/cooperative.ts"
import type { Contract } from "../../contracts/Contract.ts"
import type { ChunkDecoder } from "../../contracts/shared/ChunkDecoder.ts"
import { errorBody } from "../../contracts/shared/errorBody.ts"
import { parseJson } from "../../contracts/shared/json.ts"
import type { Conversation } from "../../domain/Conversation.ts"
import { refusesModel } from "../../domain/failureReasons.ts"
import { ForwardedHeaders } from "../../domain/forwardedHeaders.ts"
import type { GatewayError } from "../../domain/GatewayError.ts"
import { isRecord, wellFormed } from "../../domain/json.ts"
import { loginOfToken, secretsOfToken } from "../../domain/ownLogin.ts"
import { resetOfError, resetOfHeaders } from "../../domain/quota.ts"
import type { ServersModel } from "../../domain/routes.ts"
import { serverAddress } from "../../domain/serverAddress.ts"
import type { Cooperative } from "../../domain/stream/cooperative.ts"
import { putBack, takePullUnsafe } from "../../domain/stream/transduce.ts"
import { monotonicMillis } from "../../domain/time.ts"
import { type FailurePhase, UpstreamFailure } from "../../domain/UpstreamFailure.ts"
import { isUnnamed, placeOfUpstream, upstreamNamed } from "../../domain/upstreamNames.ts"
import type { RequestBudget } from "../budget.ts"
import { decodeBody, replyDecoder } from "../decodeBody.ts"
import {
  type Exchange,
  type ExchangeLimits,
  type ExchangeRequest,
  type Exchanges,
  type RequestBody,
  secretsWith
} from "../Exchange.ts"
import { errorIn, firstBytes, isText } from "../relayedReply.ts"
import type {
  CallerHeaders,
  CompletionReply,
  CompletionRequest,
  EmbeddingsRequest,
  Recorder,
  RelayedReply,
  RelayedRequest,
  RoundRecorder
} from "../Upstream.ts"
import { type Known, Refusals } from "./Refusals.ts"
import type { ServerSettings } from "./ServerOptions.ts"

/** Bytes, and milliseconds, that are read of a body other than a reply. */
export const longestBody = 1024 * 1024
export const slowestBody = 5_000

/** Bytes of vectors. */
export const longestVectors = 64 * 1024 * 1024

/** Values of vectors: a number has more characters than eight, on average. */
export const mostVectorValues = longestVectors / 8

/** Bytes of a list of models, and characters of the name of an organization. */
const longestList = 4 * 1024 * 1024
const longestName = 200

/** True for a page, which no API sends. */
export const isPage = (contentType = ""): boolean => /\bx?html\b|\bxml\b/i.test(contentType)

/** True for a key to send; accounts of servers without keys have a placeholder. */
export const isKey = (token: string | undefined): token is string => token !== undefined && token !== keyless

const secretsOfKey = (token: string | undefined): ReadonlyArray<string> => isKey(token) ? secretsOfToken(token) : []

/** Milliseconds for which a server that took long for a reply is asked for streams. */
const slowFor = 3_600_000

/** Statuses of a server, or of a proxy before it, whose time is over. */
const slowStatuses: ReadonlySet<number> = new Set([408, 504, 524])

/** Repetitions of a completion without what the server refuses. A server may name one field after the other. */
const mostRepeats = 3

/** Tokens of output up to which a reply is asked for as a whole. */
const mostWholeTokens = 8_192

/** True if what the caller allows makes a long reply likely: much output, or thinking. */
const mayBeLong = ({ sampling, thinking }: Conversation): boolean =>
  (sampling.maxCompletionTokens ?? sampling.maxTokens ?? 0) > mostWholeTokens ||
  (thinking !== undefined && thinking.mode !== "off" &&
    (thinking.mode === "on" || thinking.effort !== undefined || thinking.budget !== undefined))

/** The requested model: the caller's id, and the name sent to the server. */
export interface RequestedModel {
  readonly id: string
  readonly name: string
}

/** How the servers of one protocol are called. */
export interface ServerProtocol {
  readonly contract: Pick<Contract, "id" | "isError" | "readError">
  /** Headers of every request. */
  readonly headers: { readonly [name: string]: string }
  /** The headers of a key. */
  readonly credential: (key: string) => { readonly [name: string]: string }
  /** The prefix that an address of such a server ends with, such as `/v1`; `undefined` if the driver adds it. */
  readonly versionPrefix: string | undefined
}

/** The settings of a driver that concern its calls. */
export type ClientSettings = Pick<
  ServerSettings,
  "baseUrl" | "credentialHeader" | "forwardHeaders" | "limits" | "upstream" | "wholeReplies"
>

/** What a call has of the request that it is made for. */
type RequestOfCaller = Pick<EmbeddingsRequest, "budget" | "callerHeaders" | "token">

/** One request at the server. */
interface ServerCall {
  /** The kind of the request in recordings. */
  readonly label: "completion" | "carried"
  readonly request: {
    readonly budget: RequestBudget
    readonly recorder: Recorder | undefined
    readonly callerHeaders: CallerHeaders | undefined
  }
  readonly model: RequestedModel
  readonly token: string | undefined
  /** Below the base URL, with its query. */
  readonly path: string
  readonly body: RequestBody
  /** What recordings keep of the body. */
  readonly recorded: string
  /** The id of the upstream's session or reply, by which recordings belong together. */
  readonly session: string | undefined
  readonly limits: ExchangeLimits
  /** Headers of this request beside those of the protocol. */
  readonly headers: { readonly [name: string]: string }
  /** The reply is asked for as a whole. */
  readonly isWhole: boolean
  /** Called when the exchange is over, with its status; 0 without one. */
  readonly ended: (status: number) => void
}

/** One completion in the server's words. */
export interface CompletionCall {
  readonly model: RequestedModel
  /** Below the base URL, with its query. */
  readonly path: string
  readonly body: string
  /** Headers of this request beside those of the protocol. */
  readonly headers: { readonly [name: string]: string } | undefined
  /** The id of the reply, until the server says one. */
  readonly id: string
  /** Decodes the events of the reply. */
  readonly chunks: ChunkDecoder
}

/** Closing the connection stops the server, so leaving takes no time. */
const leavesAtOnce = () => true

/** Adds what a list of models leaves out. `body` is the list's JSON. */
export type AskMore = (
  models: ReadonlyArray<ServersModel>,
  body: unknown,
  token: string | undefined
) => Effect.Effect<ReadonlyArray<ServersModel>>

/** The client of one server. */
export type ServerClient = ReturnType<typeof makeServerClient>

/** Makes the client of one server. */
export const makeServerClient = (
  exchanges: Exchanges["Service"],
  settings: ClientSettings,
  protocol: ServerProtocol
) => {
  const { credentialHeader, limits } = settings
  const { contract: { id, isError, readError }, versionPrefix } = protocol
  const upstream = upstreamNamed(settings.upstream)
  const place = placeOfUpstream(upstream)
  const { base, origin, pathOf, query } = serverAddress(settings.baseUrl)
  /**
   * Until then every reply is asked for as a stream: a whole one took longer than half of the time in which the server has to begin. It
   * begins at its end, and a longer one would look like a server that hangs.
   */
  let slowUntil = -Infinity
  const refusals = new Refusals(id)
  const isAskedWhole = ({ conversation, isWhole }: CompletionRequest, now: number): boolean =>
    isWhole === true && (
      conversation.vendorFields?.compacts === true ||
      (settings.wholeReplies === "whole" && now >= slowUntil && !mayBeLong(conversation))
    )

  const isVersioned = versionPrefix === undefined || /\/v\d[^/]*(?:\/|$)/.test(base) || /[?&]api-version=/i.test(query)

  const forwarded = new ForwardedHeaders(settings.forwardHeaders, credentialHeader)

  /** The headers of a request with a token: the protocol's, those of the caller, the request's own and the credential, of which later ones win. */
  const headersWith = (
    token: string | undefined,
    own: { readonly [name: string]: string } | undefined,
    caller: CallerHeaders | undefined
  ): { readonly [name: string]: string } => {
    const headers = { ...protocol.headers, ...forwarded.of(caller), ...own }
    if (credentialHeader !== undefined) delete headers[credentialHeader]
    if (!isKey(token)) return headers
    const login = loginOfToken(token)
    if (login !== undefined) return Object.assign(headers, { [login.header]: login.value })
    return Object.assign(
      headers,
      credentialHeader === undefined ? protocol.credential(token) : { [credentialHeader]: token }
    )
  }

  /** Advice for the operator, and the message, if a refusal looks like a configuration mistake. */
  const advice = (
    failure: UpstreamFailure,
    token: string | undefined,
    model: RequestedModel | undefined
  ): { readonly message?: string; readonly advice?: string } | undefined => {
    const { kind, message = "", status = 0 } = failure
    if (status === 401 && !isKey(token)) {
      const of = isUnnamed(upstream) ? "" : ` of the upstream ${upstream}`
      return { advice: `add an account${of} with the key as its token` }
    }
    if (status >= 300 && status < 400) {
      return { message: "it redirects", advice: `${place}.base_url must be the address itself` }
    }
    if (model !== undefined && refusesModel(failure)) {
      return {
        message: message.trim() || `it has no model ${model.name}`,
        advice: `${place}.models.${model.id} says which model of the server is meant`
      }
    }
    const isUnknown = kind === "malformed" || status === 405 || (status === 404 && !refusesModel(failure)) ||
      /unexpected endpoint/i.test(message)
    return isUnknown && !isVersioned
      ? { advice: `${place}.base_url may lack its version prefix, such as ${versionPrefix}` }
      : undefined
  }

  const readBody = (exchange: Exchange, round?: RoundRecorder) =>
    Effect.map(exchange.text(longestBody, slowestBody), (text) => {
      round?.bytes(Buffer.from(text))
      return text
    })

  /** The failure of an answer: its JSON error, otherwise its status. Pages are never quoted. */
  const refusal = Effect.fnUntraced(function*(
    phase: FailurePhase,
    exchange: Exchange,
    text: string,
    token: string | undefined,
    model?: RequestedModel
  ) {
    const { status } = exchange
    const now = yield* Clock.currentTimeMillis
    const retryAfterMs = exchange.retryAfterMs()
    const shouldRetry = /^\s*(?:(true)|false)\s*$/i.exec(exchange.header("x-should-retry") ?? "")
    const requestId = exchange.header("request-id") ?? exchange.header("x-request-id")
    const body = parseJson(text)
    const stated = readError(body)
    const times = [
      exchange.retryAfter(now),
      stated.retryAfter,
      resetOfError(body, now),
      status === 429 ? resetOfHeaders((name) => exchange.header(name), now) : undefined
    ]
    // Of several times the latest one is when the server takes requests again.
    const retryAfter = Math.max(...times.map((seconds) => seconds ?? 0))
    const facts = {
      phase,
      kind: isPage(exchange.header("content-type")) && status < 300 ? "malformed" : "refused",
      ...stated,
      ...(status < 300 ? {} : { status }),
      ...(exchange.isWhole ? { isWhole: true } : {}),
      ...errorBody(body, Buffer.byteLength(text)),
      ...(requestId === undefined ? {} : { requestId: requestId.slice(0, longestName) }),
      ...(retryAfter === 0 ? {} : { retryAfter }),
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
      ...(shouldRetry === null ? {} : { shouldRetry: shouldRetry[1] !== undefined }),
      ...(isKey(token) ? {} : { anonymous: true }),
      // A page or plain text comes from something other than the server.
      ...(isRecord(body) || Array.isArray(body)
        ? {}
        : { cause: exchange.unexpectedAnswer(text, secretsWith(exchanges, secretsOfKey(token))) })
    } as const
    const failure = new UpstreamFailure(facts)
    const found = advice(failure, token, model)
    return found === undefined ? failure : new UpstreamFailure({ ...facts, ...found })
  })

  const isAnswer = (exchange: Exchange): boolean =>
    exchange.status >= 200 && exchange.status < 300 && !isPage(exchange.header("content-type"))

  const start = Effect.fnUntraced(function*(
    method: "DELETE" | "GET" | "POST",
    path: string,
    body: string | undefined,
    phase: FailurePhase,
    { budget, callerHeaders, token }: RequestOfCaller,
    headers: { readonly [name: string]: string } | undefined
  ) {
    const exchange = yield* exchanges.start({
      method,
      origin,
      path: pathOf(path),
      headers: headersWith(token, {
        accept: "application/json",
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers
      }, callerHeaders),
      body,
      connection: undefined
    }, { phase, limits, budget, isWhole: false })
    yield* Effect.addFinalizer(() => Effect.sync(exchange.leave))
    yield* exchange.head
    return exchange
  })

  /** Asks for what the server itself says, outside of any caller's request, and waits for the head. The scope owns the connection. */
  const ask = (method: "DELETE" | "GET" | "POST", path: string, token: string | undefined, body?: string) =>
    start(method, path, body, "session", { token, budget: undefined, callerHeaders: undefined }, undefined)

  /** Sends a caller's request whose answer is one body of JSON, and waits for the head. The scope owns the connection. */
  const post = (
    path: string,
    body: string,
    request: RequestOfCaller,
    headers: { readonly [name: string]: string } | undefined
  ) => start("POST", path, wellFormed(body), "completion", request, headers)

  /** Sends a request, waits for the head of the response, and continues with an answer. The scope owns the connection. */
  const call = <A>(
    { body, ended, headers, isWhole, label, limits, model, path, recorded, request, session, token }: ServerCall,
    scope: Scope.Scope,
    answered: (exchange: Exchange, round: RoundRecorder | undefined) => Effect.Effect<A, UpstreamFailure>
  ): Effect.Effect<A, UpstreamFailure> => {
    const { budget, callerHeaders, recorder } = request
    const round = recorder?.round({
      label,
      protocol: id,
      url: `${origin}${base}${path}`,
      requestBody: recorded,
      sessionId: session,
      secret: secretsOfKey(token).map((secret) => Redacted.make(secret))[0],
      secrets: [...exchanges.secrets, ...secretsOfKey(token).slice(1).map((secret) => Redacted.make(secret))]
    })
    const post: ExchangeRequest = {
      method: "POST",
      origin,
      path: pathOf(path),
      headers: headersWith(token, headers, callerHeaders),
      body,
      connection: undefined
    }
    let running: Exchange | undefined
    // Added before the request is sent, so that every end of the scope stops it.
    const leave = Effect.sync(() => {
      running?.leave()
      round?.closed(running?.cause)
      ended(running?.status ?? 0)
    })
    return Effect.flatMap(
      Scope.addFinalizer(scope, leave),
      () =>
        Effect.flatMap(exchanges.start(post, { phase: "completion", limits, isWhole, budget }), (exchange) => {
          running = exchange
          return Effect.flatMap(exchange.head, (): Effect.Effect<A, UpstreamFailure> => {
            round?.opened(exchange.status, exchange.header("content-type"))
            if (isAnswer(exchange)) return answered(exchange, round)
            return Effect.flatMap(
              readBody(exchange, round),
              (answer) => Effect.flip(refusal("completion", exchange, answer, token, model))
            )
          })
        })
    )
  }

  /** Sends a completion and waits for the head of the response. */
  const send = (
    request: CompletionRequest,
    token: string | undefined,
    { body: written, chunks, headers, id, model, path }: CompletionCall,
    scope: Scope.Scope,
    clock: Clock.Clock
  ): Effect.Effect<CompletionReply, UpstreamFailure> => {
    const startedAt = monotonicMillis(clock)
    const body = wellFormed(written)
    return call(
      {
        label: "completion",
        request,
        model,
        token,
        path,
        body,
        recorded: body,
        session: id,
        limits,
        headers: { accept: "text/event-stream, application/json", "content-type": "application/json", ...headers },
        isWhole: request.isWhole === true,
        ended: (status) => {
          if (request.isWhole !== true) return
          const now = monotonicMillis(clock)
          if (now - startedAt > limits.firstByte / 2 || slowStatuses.has(status)) slowUntil = now + slowFor
        }
      },
      scope,
      (exchange, round) => {
        const decoder = replyDecoder(
          chunks,
          (millis) => exchange.expectEnd(millis),
          request.budget,
          round?.bytes,
          () => exchange.isRead
        )
        const organization = exchange.header("openai-organization")?.slice(0, longestName)
        return Effect.succeed({ id, events: decodeBody(exchange, decoder), isOver: leavesAtOnce, organization })
      }
    )
  }

  /** Sends a completion without what the server has refused, and again if its refusal says something new of that. */
  const sendFitted = (
    request: CompletionRequest,
    token: string | undefined,
    call: CompletionCall,
    scope: Scope.Scope,
    clock: Clock.Clock,
    tried: ReadonlyArray<string> = [],
    more: ReadonlyArray<Known> = []
  ): Effect.Effect<CompletionReply, UpstreamFailure> => {
    const { model: { id: model } } = call
    const { budget } = request
    const { body, changed } = refusals.fitted(model, call.body, request, monotonicMillis(clock), more)
    if (changed.length > 0) request.onChanged?.(changed)
    const sent = send(request, token, { ...call, body }, scope, clock)
    const noted = more.length === 0 && !refusals.knows(model) ? sent : Effect.map(sent, (reply) => {
      if (more.length > 0) refusals.learn(model, more)
      refusals.answered(model, body, monotonicMillis(clock))
      return reply
    })
    return Effect.catch(noted, (failure) => {
      const { refused, status } = failure
      if (refused === undefined || tried.length === mostRepeats || (status !== 400 && status !== 422)) {
        return Effect.fail(failure)
      }
      const now = monotonicMillis(clock)
      const bodies = [...tried, body]
      const known = [...more, ...Refusals.read(refused, body, now)]
      return !bodies.includes(refusals.fitted(model, call.body, request, now, known).body) && budget.takeCall()
        ? sendFitted(request, token, call, scope, clock, bodies, known)
        : Effect.fail(failure)
    })
  }

  /** Makes the call of a completion, in slices, and sends it. `now`: monotonic milliseconds. */
  const complete = (
    request: CompletionRequest,
    say: (request: CompletionRequest, now: number) => Cooperative<CompletionCall>
  ): Effect.Effect<CompletionReply, UpstreamFailure, Scope.Scope> =>
    Effect.flatMapEager(request.credential.token, (token) =>
      Effect.withFiber((fiber) => {
        const scope = Context.getUnsafe(fiber.context, Scope.Scope)
        const { budget } = request
        budget.startReply()
        if (!budget.takeCall()) return Effect.fail(budget.noCallLeft("completion"))
        const clock = fiber.getRef(Clock.Clock)
        const now = monotonicMillis(clock)
        const asked = { ...request, isWhole: isAskedWhole(request, now) }
        return Effect.flatMapEager(
          startCooperatively(say(asked, now)),
          (call) => sendFitted(asked, token, call, scope, clock)
        )
      }))

  /** Relays a request and waits for the first bytes of the reply. */
  const relay = (
    { accept, body, budget, callerHeaders, path, recorder, token }: RelayedRequest,
    model: RequestedModel,
    scope: Scope.Scope
  ): Effect.Effect<RelayedReply, UpstreamFailure | GatewayError> => {
    const { content, contentType, length, recorded } = body(model.name)
    let fault: GatewayError | undefined
    const noteFault = Stream.tapError((error: GatewayError) => Effect.sync(() => fault = error))
    const relayed = call(
      {
        label: "carried",
        request: { budget, recorder, callerHeaders },
        model,
        token,
        path,
        body: Stream.isStream(content) ? noteFault(content) : content,
        recorded,
        session: undefined,
        // The head of a reply that is not streamed comes with its last word.
        limits: { ...limits, firstByte: Math.max(limits.firstByte, limits.silence) },
        headers: {
          accept,
          "content-type": contentType,
          ...(length === undefined ? {} : { "content-length": String(length) })
        },
        isWhole: false,
        ended: () => {}
      },
      scope,
      (exchange, round) => {
        const type = exchange.header("content-type") ?? ""
        const isRecorded = isText(type)
        const pull = Effect.flatMap(takePullUnsafe(exchange.bytes), (bytes) => {
          if (isRecorded) round?.bytes(bytes[0])
          budget.progressed()
          return budget.addBytes(bytes[0].length) ? Effect.succeed(bytes) : Effect.fail(budget.tooManyBytes("stream"))
        })
        return Effect.flatMap(firstBytes(pull, type, budget), (first): Effect.Effect<RelayedReply, UpstreamFailure> => {
          const error = errorIn(first, type)
          if (error !== undefined && isError(error)) {
            return Effect.flip(refusal("completion", exchange, JSON.stringify(error), token, model))
          }
          return Effect.succeed({
            status: exchange.status,
            header: (name) => exchange.header(name),
            bytes: putBack([first], pull)
          })
        })
      }
    )
    // The exchange ends with its body.
    return Effect.mapError(relayed, (failure) => fault ?? failure)
  }

  /**
   * Asks for the list of models at a path, which costs nothing. Without a list at a plausible address, the key is assumed to be valid.
   */
  const verify = (path: string) =>
    Effect.fnUntraced(function*(token: string | undefined) {
      const exchange = yield* ask("GET", path, token)
      const text = yield* readBody(exchange)
      const body = parseJson(text)
      const { status } = exchange
      const hasNoList = status === 404 || status === 405 || status === 501
      if (isAnswer(exchange) && !(isRecord(body) && isError(body))) return
      if (hasNoList && isVersioned) return
      return yield* yield* refusal("session", exchange, text, token)
    }, Effect.scoped)

  /**
   * Reads the server's list of models at a path. `read` finds the models in its JSON. `askMore` asks for what the list leaves out, in bounded
   * time.
   */
  const listModels = (
    path: string,
    read: (body: unknown) => ReadonlyArray<ServersModel> | undefined,
    askMore: AskMore | undefined
  ) =>
    Effect.fnUntraced(function*(token: string | undefined) {
      const exchange = yield* ask("GET", path, token)
      const text = yield* exchange.text(longestList, slowestBody)
      const body = parseJson(text)
      if (!isAnswer(exchange) || (isRecord(body) && isError(body))) {
        return yield* yield* refusal("session", exchange, text, token)
      }
      const models = read(body)
      if (models === undefined) {
        return yield* new UpstreamFailure({ phase: "session", kind: "malformed", message: "it answered with no list" })
      }
      return askMore === undefined ? models : yield* askMore(models, body, token)
    }, Effect.scoped)

  const { secrets } = exchanges
  const refused = (now: number) => refusals.known(now)
  return {
    ask,
    complete,
    isAnswer,
    isError,
    limits,
    listModels,
    post,
    readBody,
    refusal,
    refused,
    relay,
    secrets,
    verify
  }
}
