/**
 * The `openai` driver: any server with an OpenAI-compatible `POST {base_url}/chat/completions`.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type { UpstreamEvent } from "../../domain/UpstreamEvent.ts"
import { UpstreamFailure } from "../../domain/UpstreamFailure.ts"
import { makeSseDecoder, type SseEvent } from "../../stream/sse.ts"
import type { BodyDecoder, Connection, ConnectionLimits } from "../connection.ts"
import { decodeBody, openConnection, parseRetryAfter, readShortBody } from "../connection.ts"
import type { CompletionRequest, Driver, RoundRecorder, UpstreamModel } from "../Upstream.ts"
import { chunkDecoder, errorFacts } from "./decodeChunks.ts"
import type { ToolMode } from "./requestBody.ts"
import { requestBody } from "./requestBody.ts"

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

/** An account with this token stands for a server that asks for no key. */
export const noToken = "none"

/** After the server has said why the reply ended, only usage and the sentinel may follow: they get this long. */
const settleMillis = 5_000
/** The most that is read of an error's body. */
const errorBody = 64 * 1024

const malformed = new UpstreamFailure({ phase: "stream", kind: "malformed" })

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const fieldOf = (value: unknown, key: string): unknown =>
  typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined

/** The facts of a refusal: a JSON error where there is one, else the status alone; a page is never quoted. */
const refusal = (connection: Connection) =>
  Effect.gen(function*() {
    const { headers, status } = connection.response
    const body = parseJson(yield* readShortBody(connection, errorBody, settleMillis))
    const facts = errorFacts(fieldOf(body, "error") ?? body)
    const retryAfter = parseRetryAfter(headers["retry-after"], yield* Clock.currentTimeMillis)
    return new UpstreamFailure({
      phase: "completion",
      kind: "refused",
      ...facts,
      status,
      ...(retryAfter === undefined ? {} : { retryAfter })
    })
  })

const isEventStream = (contentType: string | undefined): boolean => /^text\/event-stream\b/i.test(contentType ?? "")
const isJson = (contentType: string | undefined): boolean => /[/+]json\b/i.test(contentType ?? "")

/** Decodes the body of a reply. */
const replyDecoder = (connection: Connection, round: RoundRecorder | undefined) => (): BodyDecoder<UpstreamEvent> => {
  const sse = makeSseDecoder()
  const chunks = chunkDecoder()
  const events: Array<SseEvent> = []
  const drain = (out: Array<UpstreamEvent>) => {
    for (const event of events) chunks.push(event, out)
    events.length = 0
    if (chunks.finishing()) connection.settle(settleMillis)
  }
  return {
    push(bytes, out) {
      round?.bytes(bytes)
      sse.push(bytes, events)
      drain(out)
    },
    end(out) {
      sse.end(events)
      drain(out)
      chunks.end(out)
    },
    failure: () => sse.overflowed ? malformed : chunks.failure(),
    done: chunks.done,
    complete: chunks.finishing
  }
}

/** A server that does not stream answers with one object: its message is one large delta. */
const wholeDecoder = (round: RoundRecorder | undefined) => (): BodyDecoder<UpstreamEvent> => {
  const chunks = chunkDecoder()
  const pieces: Array<Uint8Array> = []
  return {
    push(bytes) {
      round?.bytes(bytes)
      pieces.push(bytes)
    },
    end(out) {
      chunks.push({ event: undefined, data: new TextDecoder().decode(Buffer.concat(pieces)) }, out)
      chunks.end(out)
    },
    failure: chunks.failure,
    done: () => false,
    complete: () => false
  }
}

/** Makes the driver. */
export const makeOpenAiDriver = (client: HttpClient.HttpClient, options: OpenAiOptions): Driver => {
  const url = `${options.baseUrl}/chat/completions`
  const names = new Map(options.models.map((model) => [model.id, model.model]))

  const authorized = (request: HttpClientRequest.HttpClientRequest, token: string | undefined) =>
    token === undefined || token === noToken ? request : HttpClientRequest.bearerToken(request, token)

  const complete = Effect.fnUntraced(function*({ conversation, credential, model, recorder }: CompletionRequest) {
    const token = yield* credential.token
    const body = requestBody(names.get(model.id) ?? model.id, conversation, options.tools)
    const request = HttpClientRequest.post(url, { acceptJson: false }).pipe(
      HttpClientRequest.setHeader("accept", "text/event-stream"),
      HttpClientRequest.bodyText(body, "application/json")
    )
    const id = `chatcmpl-${crypto.randomUUID().replaceAll("-", "")}`
    const round = recorder?.round({ label: "completion", url, requestBody: body, sessionId: id })
    if (round !== undefined) yield* Effect.addFinalizer(() => Effect.sync(() => round.closed()))
    const connection = yield* openConnection(client, authorized(request, token), "completion", options.limits)
    const { headers, status } = connection.response
    round?.opened(status)
    if (status < 200 || status >= 300) return yield* yield* refusal(connection)
    const contentType = headers["content-type"]
    if (!isEventStream(contentType) && !isJson(contentType)) {
      return yield* new UpstreamFailure({ phase: "completion", kind: "malformed", status })
    }
    const start = isEventStream(contentType) ? replyDecoder(connection, round) : wholeDecoder(round)
    return { id, sessionId: undefined, events: decodeBody(connection.bytes, start) }
  })

  /** The list of models is what such servers answer without cost; one that has no list proves nothing against a key. */
  const verify = Effect.fnUntraced(function*(token: string | undefined) {
    const request = authorized(HttpClientRequest.get(`${options.baseUrl}/models`), token)
    const connection = yield* openConnection(client, request, "session", options.limits)
    if (connection.response.status >= 400 && connection.response.status !== 404) yield* yield* refusal(connection)
  }, Effect.scoped)

  return {
    name: "openai",
    capabilities: { login: false, sessions: false, anonymous: false, sampling: true },
    models: options.furtherModels,
    login: () => Effect.fail(new UpstreamFailure({ phase: "login", kind: "refused", status: 403 })),
    verify,
    complete,
    createSession: (token) => Effect.as(verify(token), ""),
    listSessions: () => Effect.succeed([]),
    deleteSession: () => Effect.void,
    deleteAllSessions: () => Effect.void
  }
}
