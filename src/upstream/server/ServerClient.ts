/**
 * The calls of a driver whose server answers one HTTP request with one reply: the request, its recording, and refusals as failures.
 * The drivers of the vendors' protocols share it and differ in addresses, headers, bodies and decoders.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import { startCooperatively } from "../../config/clock/cooperative.ts"
import type { Contract } from "../../contracts/Contract.ts"
import type { ChunkDecoder } from "../../contracts/shared/ChunkDecoder.ts"
import type { Conversation } from "../../domain/Conversation.ts"
import { ForwardedHeaders } from "../../domain/forwardedHeaders.ts"
import { wellFormed } from "../../domain/json.ts"
import { keysOfToken, loginOfToken } from "../../domain/ownLogin.ts"
import { serverAddress } from "../../domain/serverAddress.ts"
import type { Cooperative } from "../../domain/stream/cooperative.ts"
import { monotonicMillis } from "../../domain/time.ts"
import type { FailurePhase, UpstreamFailure } from "../../domain/UpstreamFailure.ts"
import { upstreamNamed } from "../../domain/upstreamNames.ts"
import { decodeBody, replyDecoder, unframed } from "../decodeBody.ts"
import type { Exchange, Exchanges } from "../Exchange.ts"
import type { ExchangeRequest } from "../ExchangeRequest.ts"
import type {
  CallerHeaders,
  CompletionReply,
  CompletionRequest,
  EmbeddingsRequest,
  RoundRecorder
} from "../Upstream.ts"
import { callersReply } from "./acceptedConversation.ts"
import { type Known, Refusals } from "./Refusals.ts"
import { makeRelay } from "./relay.ts"
import { isKey, makeServerAnswers, type RequestedModel, secretsOfKey } from "./serverAnswers.ts"
import type { ServerCall } from "./ServerCall.ts"
import { makeServerLists } from "./serverLists.ts"
import type { ServerSettings } from "./ServerOptions.ts"
import { makeSigner } from "./signer.ts"

/** Bytes of vectors. */
export const longestVectors = 64 * 1024 * 1024

/** Values of vectors: a number has more characters than eight, on average. */
export const mostVectorValues = longestVectors / 8

/** Characters of the name of an organization. */
const longestName = 200

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
  "baseUrl" | "credentialHeader" | "forwardHeaders" | "limits" | "refusals" | "server" | "upstream" | "wholeReplies"
>

/** What a call has of the request that it is made for. */
type RequestOfCaller = Pick<EmbeddingsRequest, "budget" | "callerHeaders" | "token">

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

/** Makes the call of a completion. `now`: monotonic milliseconds. */
type SayCompletion = (request: CompletionRequest, now: number) => Cooperative<CompletionCall>

/** A body that the server has refused, and what its refusal says. */
interface Refused {
  readonly body: string
  readonly failure: UpstreamFailure
  readonly known: ReadonlyArray<Known>
}

/** Closing the connection stops the server, so leaving takes no time. */
const leavesAtOnce = () => true

/** The client of one server. */
export type ServerClient = ReturnType<typeof makeServerClient>

/** Makes the client of one server. */
export const makeServerClient = (
  exchanges: Exchanges["Service"],
  settings: ClientSettings,
  protocol: ServerProtocol
) => {
  const { credentialHeader, limits, server } = settings
  const { contract, versionPrefix } = protocol
  const { id, isError } = contract
  const { base, origin, pathOf, query } = serverAddress(settings.baseUrl)
  /**
   * Until then every reply is asked for as a stream: a whole one took longer than half of the time in which the server has to begin. It
   * begins at its end, and a longer one would look like a server that hangs.
   */
  let slowUntil = -Infinity
  const refusals = new Refusals(id, settings.refusals)
  const isAskedWhole = ({ conversation, isWhole }: CompletionRequest, now: number): boolean =>
    isWhole === true && (
      conversation.vendorFields?.compacts === true ||
      (settings.wholeReplies === "whole" && now >= slowUntil && !mayBeLong(conversation))
    )

  const isVersioned = versionPrefix === undefined || server !== undefined || /\/v\d[^/]*(?:\/|$)/.test(base) ||
    /[?&]api-version=/i.test(query)

  const signer = server?.signing === undefined ? undefined : makeSigner(server.signing)

  const { isAnswer, readBody, refusal } = makeServerAnswers(exchanges, {
    contract,
    upstream: upstreamNamed(settings.upstream),
    versionPrefix,
    isVersioned,
    heard: signer?.heard
  })

  const forwarded = new ForwardedHeaders(settings.forwardHeaders, credentialHeader)

  /** The headers of a request with a token: the protocol's, those of the caller, the request's own and the credential, of which later ones win. */
  const headersWith = (
    token: string | undefined,
    own: { readonly [name: string]: string } | undefined,
    caller: CallerHeaders | undefined
  ): { readonly [name: string]: string } => {
    const headers = { ...protocol.headers, ...forwarded.of(caller), ...own }
    if (credentialHeader !== undefined) delete headers[credentialHeader]
    if (!isKey(token) || keysOfToken(token) !== undefined) return headers
    const login = loginOfToken(token)
    if (login !== undefined) return Object.assign(headers, { [login.header]: login.value })
    return Object.assign(
      headers,
      credentialHeader !== undefined
        ? { [credentialHeader]: token }
        : server?.isBearer === true
        ? { authorization: /^Bearer\s/i.test(token) ? token : `Bearer ${token}` }
        : protocol.credential(token)
    )
  }

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
      connection: undefined,
      sign: signer?.of(token)
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
      connection: undefined,
      sign: signer?.of(token)
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
    { body: written, chunks, headers: own, id, model, path: contractPath }: CompletionCall,
    scope: Scope.Scope,
    clock: Clock.Clock
  ): Effect.Effect<CompletionReply, UpstreamFailure> => {
    const startedAt = monotonicMillis(clock)
    const isWhole = request.isWhole === true
    const said = { path: contractPath, body: wellFormed(written), headers: own }
    const { body, headers, path } = server?.address?.(said, { model: model.name, isWhole }) ?? said
    const sent = () =>
      call(
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
          isWhole,
          ended: (status) => {
            if (!isWhole) return
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
            round,
            () => exchange.isRead
          )
          const organization = exchange.header("openai-organization")?.slice(0, longestName)
          const events = decodeBody(exchange, unframed(exchange.header("content-type"), decoder))
          return Effect.succeed({ id, events, isOver: leavesAtOnce, organization })
        }
      )
    return signer === undefined ? sent() : signer.repeated(token, sent, request.budget)
  }

  /** Sends a completion without what the server has refused, and again if its refusal says something new of that. */
  const sendFitted = (
    request: CompletionRequest,
    token: string | undefined,
    say: SayCompletion,
    scope: Scope.Scope,
    clock: Clock.Clock,
    before: ReadonlyArray<Refused> = []
  ): Effect.Effect<CompletionReply, UpstreamFailure> => {
    const { model: { id: model }, budget } = request
    const now = monotonicMillis(clock)
    const more = before.flatMap(({ known }) => known)
    const accepted = refusals.accepted(model, request, now, more)
    return Effect.flatMapEager(
      startCooperatively(say({ ...request, conversation: accepted.conversation }, now)),
      (call) => {
        const { body, changed: fields } = refusals.fitted(model, call.body, request, now, more)
        const last = before.at(-1)
        if (last !== undefined && (before.some((each) => each.body === body) || !budget.takeCall())) {
          return Effect.fail(last.failure)
        }
        const changed = [...accepted.changed, ...fields]
        if (changed.length > 0) request.onChanged?.(changed)
        const sent = send(request, token, { ...call, body }, scope, clock)
        const noted = more.length === 0 && !refusals.knows(model) ? sent : Effect.map(sent, (reply) => {
          if (more.length > 0) refusals.learn(model, more)
          refusals.answered(model, body, monotonicMillis(clock))
          return reply
        })
        const answered = accepted.replyTool === undefined && accepted.names.size === 0
          ? noted
          : Effect.map(noted, (reply) => callersReply(reply, accepted, request))
        return Effect.catch(answered, (failure) => {
          const { refused, status } = failure
          if (refused === undefined || before.length === mostRepeats || (status !== 400 && status !== 422)) {
            return Effect.fail(failure)
          }
          const known = Refusals.read(failure, body, monotonicMillis(clock))
          return sendFitted(request, token, say, scope, clock, [...before, { body, failure, known }])
        })
      }
    )
  }

  /** Makes the call of a completion, in slices, and sends it. */
  const complete = (
    request: CompletionRequest,
    say: SayCompletion
  ): Effect.Effect<CompletionReply, UpstreamFailure, Scope.Scope> =>
    Effect.flatMapEager(request.credential.token, (token) =>
      Effect.withFiber((fiber) => {
        const scope = Context.getUnsafe(fiber.context, Scope.Scope)
        const { budget } = request
        budget.startReply()
        if (!budget.takeCall()) return Effect.fail(budget.noCallLeft("completion"))
        const clock = fiber.getRef(Clock.Clock)
        const isWhole = isAskedWhole(request, monotonicMillis(clock))
        return sendFitted({ ...request, isWhole }, token, say, scope, clock)
      }))

  const relay = makeRelay({ call, isError, limits, refusal })
  const { listModels, verify } = makeServerLists({ ask, isAnswer, isError, isVersioned, readBody, refusal })
  const { secrets } = exchanges
  return {
    ask,
    complete,
    count: server?.count,
    isAnswer,
    isError,
    limits,
    listModels,
    post,
    readBody,
    refusal,
    relay,
    secrets,
    verify
  }
}
