/**
 * The `openai` driver: any server with an OpenAI-compatible `POST {base_url}/chat/completions`.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import { keyless } from "../../config/Account.ts"
import { startCooperatively } from "../../config/clock/cooperative.ts"
import { refusesModel } from "../../domain/classifyUpstreamFailure.ts"
import { isRecord } from "../../domain/json.ts"
import { fromPullOnce } from "../../domain/stream/transduce.ts"
import { type FailurePhase, UpstreamFailure } from "../../domain/UpstreamFailure.ts"
import { decodeBody } from "../decodeBody.ts"
import type { Exchange, ExchangeLimits, ExchangeRequest, Exchanges } from "../Exchange.ts"
import { parseJson } from "../json.ts"
import type {
  CompletionReply,
  CompletionRequest,
  Driver,
  EmbeddingsRequest,
  RoundRecorder,
  UpstreamModel
} from "../Upstream.ts"
import { readEmbeddings, replyDecoder } from "./decodeReply.ts"
import { errorFacts, isError } from "./errorFacts.ts"
import type { ToolMode } from "./messages.ts"
import { carriedFields, carriesField, chatRequest, type FieldPolicy } from "./requestBody.ts"
import { type HistoryReasoning, saysThinking, type ThinkingWords, unknownNames } from "./thinking.ts"

/** Settings of the driver. */
export interface OpenAiOptions {
  /** Without a trailing slash, version prefix included (`http://127.0.0.1:8000/v1`). */
  readonly baseUrl: string
  /** The ids that callers use, with the server's names. Other ids are sent unchanged. */
  readonly models: ReadonlyArray<UpstreamModel & { readonly model: string; readonly thinking?: ThinkingWords }>
  /** Model ids beyond the native ones. */
  readonly furtherModels: ReadonlyArray<UpstreamModel>
  readonly tools: ToolMode
  /** The turns whose thinking goes back; the default is all. */
  readonly historyReasoning?: HistoryReasoning | undefined
  /** What becomes of fields that the gateway does not model. Default: all pass. */
  readonly fields?: FieldPolicy | undefined
  readonly limits: ExchangeLimits
}

/** Bytes, and milliseconds, that are read of a body other than a reply. */
const longestBody = 1024 * 1024
const slowestBody = 5_000

/** Bytes of vectors. */
const longestVectors = 64 * 1024 * 1024

const isPage = (contentType = ""): boolean => /\bx?html\b|\bxml\b/i.test(contentType)

/** The requested model: the caller's id, and the name sent to the server. */
interface RequestedModel {
  readonly id: string
  readonly name: string
}

/** Closing the connection stops the server, so leaving takes no time. */
const leavesAtOnce = () => true

/** Makes the driver. */
export const makeOpenAiDriver = (exchanges: Exchanges["Service"], options: OpenAiOptions): Driver => {
  const { baseUrl, limits } = options
  const url = `${baseUrl}/chat/completions`
  const { origin, pathname } = new URL(baseUrl)
  const base = pathname === "/" ? "" : pathname
  const names = new Map(options.models.map((model) => [model.id, model.model]))
  const thinkingWords = new Map(options.models.map((model) => [model.id, model.thinking]))
  const reasoningNames = unknownNames()
  const { historyReasoning } = options

  const carries = carriesField(options.fields ?? "pass")

  const isVersioned = /\/v\d[^/]*(?:\/|$)/.test(pathname)

  const isKey = (token: string | undefined): token is string => token !== undefined && token !== keyless

  const authorization = (token: string | undefined): { readonly authorization?: string } =>
    isKey(token) ? { authorization: `Bearer ${token}` } : {}

  /** Advice for the operator, if a refusal looks like a configuration mistake. */
  const advice = (failure: UpstreamFailure, token: string | undefined, model: RequestedModel | undefined) => {
    const { kind, message = "", status = 0 } = failure
    if (status === 401 && !isKey(token)) {
      return "add an account with the key as its token"
    }
    if (status >= 300 && status < 400) return "it redirects; upstream.base_url must be the address itself"
    if (model !== undefined && refusesModel(failure)) {
      const own = message.trim().replace(/\.$/, "") || `it has no model ${model.name}`
      return `${own}; upstream.models.${model.id} says which model of the server is meant`
    }
    const isUnknown = kind === "malformed" || status === 405 || (status === 404 && !refusesModel(failure)) ||
      /unexpected endpoint/i.test(message)
    return isUnknown && !isVersioned ? "upstream.base_url may lack its version prefix, such as /v1" : undefined
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
    const retryAfter = exchange.retryAfter(yield* Clock.currentTimeMillis)
    const body = parseJson(text)
    const stated = errorFacts(body)
    const facts = {
      phase,
      kind: isPage(exchange.header("content-type")) && status < 300 ? "malformed" : "refused",
      ...stated,
      ...(status < 300 ? {} : { status }),
      ...(retryAfter === undefined ? {} : { retryAfter }),
      ...(isKey(token) ? {} : { anonymous: true }),
      // A page or plain text comes from something other than the server.
      ...(isRecord(body) || Array.isArray(body)
        ? {}
        : { cause: exchange.unexpectedAnswer(text, isKey(token) ? [token] : []) })
    } as const
    const failure = new UpstreamFailure(facts)
    const message = advice(failure, token, model)
    return message === undefined ? failure : new UpstreamFailure({ ...facts, message })
  })

  /** Sends the call and waits for the head of the response. */
  const send = (
    { budget, recorder }: CompletionRequest,
    model: RequestedModel,
    token: string | undefined,
    body: string,
    stop: ReadonlyArray<string>,
    scope: Scope.Scope
  ): Effect.Effect<CompletionReply, UpstreamFailure> => {
    const id = `chatcmpl-${crypto.randomUUID().replaceAll("-", "")}`
    const round = recorder?.round({
      label: "completion",
      protocol: "openai",
      url,
      requestBody: body,
      sessionId: id,
      secret: isKey(token) ? Redacted.make(token) : undefined
    })
    const post: ExchangeRequest = {
      method: "POST",
      origin,
      path: `${base}/chat/completions`,
      headers: {
        accept: "text/event-stream, application/json",
        "content-type": "application/json",
        ...authorization(token)
      },
      body
    }
    let running: Exchange | undefined
    // Added before the request is sent, so that every end of the scope stops it.
    const leave = Effect.sync(() => {
      running?.leave()
      round?.closed(running?.cause)
    })
    return Effect.flatMap(
      Scope.addFinalizer(scope, leave),
      () =>
        Effect.flatMap(exchanges.start(post, { phase: "completion", limits, budget }), (exchange) => {
          running = exchange
          return Effect.flatMap(exchange.head, (): Effect.Effect<CompletionReply, UpstreamFailure> => {
            const { status } = exchange
            const contentType = exchange.header("content-type")
            round?.opened(status, contentType)
            if (status < 200 || status >= 300 || isPage(contentType)) {
              return Effect.flatMap(
                readBody(exchange, round),
                (answer) => Effect.flip(refusal("completion", exchange, answer, token, model))
              )
            }
            const decoder = replyDecoder(
              stop,
              (millis) => exchange.expectEnd(millis),
              budget,
              round?.bytes,
              reasoningNames
            )
            const events = fromPullOnce(Effect.suspend(decodeBody(exchange, decoder)))
            return Effect.succeed({ id, events, isOver: leavesAtOnce })
          })
        })
    )
  }

  const complete = (request: CompletionRequest): Effect.Effect<CompletionReply, UpstreamFailure, Scope.Scope> =>
    Effect.flatMapEager(request.credential.token, (token) =>
      Effect.withFiber((fiber) => {
        const scope = Context.getUnsafe(fiber.context, Scope.Scope)
        const { budget, conversation, model } = request
        budget.startReply()
        if (!budget.takeCall()) return Effect.fail(budget.noCallLeft("completion"))
        const asked = { id: model.id, name: names.get(model.id) ?? model.id }
        return Effect.flatMapEager(
          startCooperatively(
            chatRequest(asked.name, conversation, options.tools, {
              words: thinkingWords.get(model.id),
              history: historyReasoning,
              names: reasoningNames
            }, carries)
          ),
          ({ body, stop }) => send(request, asked, token, body, stop, scope)
        )
      }))

  /**
   * Asks for the list of models, which costs nothing. Without a list at a plausible address, the key is assumed to be valid.
   */
  const verify = Effect.fnUntraced(function*(token: string | undefined) {
    const exchange = yield* exchanges.start({
      method: "GET",
      origin,
      path: `${base}/models`,
      headers: { accept: "application/json", ...authorization(token) },
      body: undefined
    }, { phase: "session", limits })
    yield* Effect.addFinalizer(() => Effect.sync(exchange.leave))
    yield* exchange.head
    const { status } = exchange
    const text = yield* readBody(exchange)
    const body = parseJson(text)
    const isAnswer = status >= 200 && status < 300 && !isPage(exchange.header("content-type")) &&
      !(isRecord(body) && isError(body))
    const hasNoList = status === 404 || status === 405 || status === 501
    if (isAnswer || (hasNoList && isVersioned)) return
    return yield* yield* refusal("session", exchange, text, token)
  }, Effect.scoped)

  /** Makes embeddings in one call. */
  const embed = Effect.fnUntraced(function*({ dimensions, fields = {}, inputs, model, token }: EmbeddingsRequest) {
    const asked = { id: model.id, name: names.get(model.id) ?? model.id }
    const body = JSON.stringify({
      ...carriedFields(fields, carries),
      model: asked.name,
      input: inputs,
      encoding_format: "float",
      ...(dimensions === undefined ? {} : { dimensions })
    })
    const exchange = yield* exchanges.start({
      method: "POST",
      origin,
      path: `${base}/embeddings`,
      headers: { accept: "application/json", "content-type": "application/json", ...authorization(token) },
      body
    }, { phase: "completion", limits })
    yield* Effect.addFinalizer(() => Effect.sync(exchange.leave))
    yield* exchange.head
    const { status } = exchange
    const isRefusal = status < 200 || status >= 300 || isPage(exchange.header("content-type"))
    const text = yield* exchange.text(
      isRefusal ? longestBody : longestVectors,
      isRefusal ? slowestBody : limits.firstByte
    )
    const parsed = isRefusal ? undefined : parseJson(text)
    const reply = readEmbeddings(parsed, inputs.length)
    if (reply !== undefined) return reply
    if (isRefusal || (isRecord(parsed) && isError(parsed))) {
      return yield* yield* refusal("completion", exchange, text, token, asked)
    }
    return yield* new UpstreamFailure({
      phase: "completion",
      kind: "malformed",
      message: "it answered with no embeddings"
    })
  }, Effect.scoped)

  return {
    name: "openai",
    embed,
    carries,
    // Most self-hosted servers need no key; others refuse by themselves.
    capabilities: { login: false, sessions: false, anonymous: true, sampling: true },
    models: options.furtherModels,
    saysThinking: (model, thinking) => saysThinking(thinking, thinkingWords.get(model.id)),
    login: () =>
      Effect.fail(
        new UpstreamFailure({
          phase: "login",
          kind: "refused",
          status: 403,
          message: "the upstream knows no logins; configure an API key as the account's token"
        })
      ),
    verify,
    complete,
    createSession: (token) => Effect.as(verify(token), ""),
    listSessions: () => Effect.succeed([]),
    deleteSession: () => Effect.void,
    deleteAllSessions: () => Effect.void
  }
}
