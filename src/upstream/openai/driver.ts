/**
 * The `openai` driver: any server with an OpenAI-compatible `POST {base_url}/chat/completions`.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { keyless } from "../../config/Account.ts"
import { inSlices } from "../../config/inSlices.ts"
import type { FailurePhase } from "../../domain/UpstreamFailure.ts"
import { UpstreamFailure } from "../../domain/UpstreamFailure.ts"
import type { Connection, ConnectionLimits } from "../connection.ts"
import { decodeBody, openConnection, parseRetryAfter, readShortBody } from "../connection.ts"
import type { CompletionReply, CompletionRequest, Driver, RoundRecorder, UpstreamModel } from "../Upstream.ts"
import { replyDecoder } from "./decodeReply.ts"
import { errorFacts, isError } from "./errorFacts.ts"
import { isRecord, parseJson } from "./json.ts"
import type { ToolMode } from "./messages.ts"
import { chatRequest } from "./requestBody.ts"

/** What the driver needs to know of its server. */
export interface OpenAiOptions {
  /** Without a trailing slash, version prefix included (`http://127.0.0.1:8000/v1`). */
  readonly baseUrl: string
  /** Ids that callers use, with the name that the server knows. An id that is not here is sent as it is. */
  readonly models: ReadonlyArray<UpstreamModel & { readonly model: string }>
  /** Ids that are listed and served beyond the natives. */
  readonly furtherModels: ReadonlyArray<UpstreamModel>
  readonly tools: ToolMode
  readonly limits: ConnectionLimits
}

/** The most that is read of a body that is no reply, in bytes and milliseconds. */
const longestBody = 1024 * 1024
const slowestBody = 5_000

const isPage = (contentType = ""): boolean => /\bx?html\b|\bxml\b/i.test(contentType)

/** Makes the driver. */
export const makeOpenAiDriver = (client: HttpClient.HttpClient, options: OpenAiOptions): Driver => {
  const { baseUrl, limits } = options
  const url = `${baseUrl}/chat/completions`
  const names = new Map(options.models.map((model) => [model.id, model.model]))

  const isVersioned = /\/v\d[^/]*(?:\/|$)/.test(new URL(baseUrl).pathname)

  const isKey = (token: string | undefined): token is string => token !== undefined && token !== keyless

  const authorized = (request: HttpClientRequest.HttpClientRequest, token: string | undefined) =>
    isKey(token) ? HttpClientRequest.bearerToken(request, token) : request

  /** Says what the operator may have got wrong, where a refusal looks like that. */
  const advice = ({ kind, message = "", status = 0 }: UpstreamFailure, token: string | undefined) => {
    if (status === 401 && !isKey(token)) return "it asks for an API key, and the account has none as its token"
    if (status >= 300 && status < 400) return "it redirects; upstream.base_url must be the address itself"
    const isUnknown = kind === "malformed" || status === 405 || (status === 404 && !/\bmodel\b/i.test(message)) ||
      /unexpected endpoint/i.test(message)
    return isUnknown && !isVersioned ? "upstream.base_url may lack its version prefix, such as /v1" : undefined
  }

  const readBody = (connection: Connection, round?: RoundRecorder) => {
    const bytes = Stream.map(connection.bytes, (chunk) => {
      round?.bytes(chunk)
      return chunk
    })
    return Effect.map(readShortBody({ ...connection, bytes }, longestBody, slowestBody), parseJson)
  }

  /** The failure that a reply is: a JSON error where there is one, else the status alone; a page is never quoted. */
  const refusal = Effect.fnUntraced(function*(
    phase: FailurePhase,
    { headers, status }: HttpClientResponse.HttpClientResponse,
    body: unknown,
    token: string | undefined
  ) {
    const retryAfter = parseRetryAfter(headers["retry-after"], yield* Clock.currentTimeMillis)
    const facts = {
      phase,
      kind: isPage(headers["content-type"]) && status < 300 ? "malformed" : "refused",
      ...errorFacts(body),
      ...(status < 300 ? {} : { status }),
      ...(retryAfter === undefined ? {} : { retryAfter })
    } as const
    const failure = new UpstreamFailure(facts)
    const message = advice(failure, token)
    return message === undefined ? failure : new UpstreamFailure({ ...facts, message })
  })

  const complete = Effect.fnUntraced(function*(
    { budget, conversation, credential, model, recorder }: CompletionRequest
  ): Effect.fn.Return<CompletionReply, UpstreamFailure, Scope.Scope> {
    const token = yield* credential.token
    const { body, stop } = yield* inSlices(
      chatRequest(names.get(model.id) ?? model.id, conversation, options.tools)
    )
    const request = HttpClientRequest.post(url, { acceptJson: false }).pipe(
      HttpClientRequest.setHeader("accept", "text/event-stream, application/json"),
      HttpClientRequest.bodyText(body, "application/json")
    )
    const id = `chatcmpl-${crypto.randomUUID().replaceAll("-", "")}`
    const round = recorder?.round({
      label: "completion",
      protocol: "openai",
      url,
      requestBody: body,
      sessionId: id,
      secret: isKey(token) ? Redacted.make(token) : undefined
    })
    if (round !== undefined) yield* Effect.addFinalizer(() => Effect.sync(() => round.closed()))
    budget.startReply()
    if (!budget.takeCall()) return yield* budget.noCallLeft("completion")
    const connection = yield* openConnection(client, authorized(request, token), "completion", limits, budget)
    const { headers, status } = connection.response
    const contentType = headers["content-type"]
    round?.opened(status, contentType)
    if (status < 200 || status >= 300 || isPage(contentType)) {
      const body = yield* readBody(connection, round)
      return yield* yield* refusal("completion", connection.response, body, token)
    }
    const events = decodeBody(connection, () => replyDecoder(stop, connection.settle, budget, round?.bytes))
    return { id, sessionId: undefined, events }
  })

  /**
   * The list of models is what such servers answer without cost. Where there is none, and the address looks right, nothing
   * is proved against the key.
   */
  const verify = Effect.fnUntraced(function*(token: string | undefined) {
    const request = authorized(HttpClientRequest.get(`${baseUrl}/models`, { acceptJson: true }), token)
    const connection = yield* openConnection(client, request, "session", limits)
    const { headers, status } = connection.response
    const body = yield* readBody(connection)
    const isAnswer = status >= 200 && status < 300 && !isPage(headers["content-type"]) &&
      !(isRecord(body) && isError(body))
    const hasNoList = status === 404 || status === 405 || status === 501
    if (isAnswer || (hasNoList && isVersioned)) return
    return yield* yield* refusal("session", connection.response, body, token)
  }, Effect.scoped)

  return {
    name: "openai",
    // Servers of one's own mostly ask for no key; others say so themselves.
    capabilities: { login: false, sessions: false, anonymous: true, sampling: true },
    models: options.furtherModels,
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
