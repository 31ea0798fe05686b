/**
 * The `openai` driver: any server with an OpenAI-compatible `POST {base_url}/chat/completions`.
 */
import * as Effect from "effect/Effect"
import { isRecord } from "../../domain/json.ts"
import type { Cooperative } from "../../domain/stream/cooperative.ts"
import { UpstreamFailure } from "../../domain/UpstreamFailure.ts"
import type { ExchangeLimits, Exchanges } from "../Exchange.ts"
import { parseJson } from "../json.ts"
import {
  type CompletionCall,
  listedIds,
  longestBody,
  longestVectors,
  makeServerClient,
  sessionless,
  slowestBody
} from "../ServerClient.ts"
import type { CarriedRequest, CompletionRequest, Driver, EmbeddingsRequest, UpstreamModel } from "../Upstream.ts"
import { chunkDecoder } from "./decodeChunks.ts"
import { readEmbeddings } from "./embeddings.ts"
import { errorFacts, isError } from "./errorFacts.ts"
import type { ToolMode } from "./messages.ts"
import { carriedFields, carriesField, chatRequest, type FieldPolicy, sendsNative } from "./requestBody.ts"
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
  /** The upstream's name in the configuration, for advice; `default` if it is absent. */
  readonly upstream?: string | undefined
  /** The header that has an account's key as it stands; the vendor's own if it is absent. */
  readonly credentialHeader?: string | undefined
  readonly limits: ExchangeLimits
}

/** Makes the driver. */
export const makeOpenAiDriver = (exchanges: Exchanges["Service"], options: OpenAiOptions): Driver => {
  const { baseUrl, historyReasoning, limits } = options
  const names = new Map(options.models.map((model) => [model.id, model.model]))
  const thinkingWords = new Map(options.models.map((model) => [model.id, model.thinking]))
  const reasoningNames = unknownNames()
  const policy = options.fields ?? "pass"
  const carries = carriesField(policy)
  const client = makeServerClient(exchanges, {
    name: "openai",
    upstream: options.upstream,
    baseUrl,
    limits,
    credential: (key) => ({ authorization: `Bearer ${key}` }),
    credentialHeader: options.credentialHeader,
    errorFacts,
    isError,
    versionPrefix: "/v1"
  })

  function* say({ conversation, model }: CompletionRequest): Cooperative<CompletionCall> {
    const asked = { id: model.id, name: names.get(model.id) ?? model.id }
    const { body, stop } = yield* chatRequest(asked.name, conversation, options.tools, {
      words: thinkingWords.get(model.id),
      history: historyReasoning,
      names: reasoningNames
    }, policy)
    return {
      model: asked,
      path: "/chat/completions",
      body,
      id: `chatcmpl-${crypto.randomUUID().replaceAll("-", "")}`,
      chunks: chunkDecoder(stop, reasoningNames)
    }
  }

  /** Makes embeddings in one call. */
  const embed = Effect.fnUntraced(function*(request: EmbeddingsRequest) {
    const { budget, dimensions, fields = {}, inputs, model, token } = request
    const asked = { id: model.id, name: names.get(model.id) ?? model.id }
    const body = JSON.stringify({
      ...carriedFields(fields, carries),
      model: asked.name,
      input: inputs,
      encoding_format: "float",
      ...(dimensions === undefined ? {} : { dimensions })
    })
    const exchange = yield* client.start("POST", "/embeddings", token, "completion", body, undefined, budget)
    const isRefusal = !client.isAnswer(exchange)
    const text = yield* exchange.text(
      isRefusal ? longestBody : longestVectors,
      isRefusal ? slowestBody : limits.firstByte
    )
    const parsed = isRefusal ? undefined : parseJson(text)
    const reply = readEmbeddings(parsed, inputs.length)
    if (reply !== undefined) return reply
    if (isRefusal || (isRecord(parsed) && isError(parsed))) {
      return yield* yield* client.refusal("completion", exchange, text, token, asked)
    }
    return yield* new UpstreamFailure({
      phase: "completion",
      kind: "malformed",
      message: "it answered with no embeddings"
    })
  }, Effect.scoped)

  const carry = (request: CarriedRequest) =>
    Effect.flatMap(Effect.scope, (scope) => {
      const { id } = request.model
      if (!request.budget.takeCall()) return Effect.fail(request.budget.noCallLeft("completion"))
      return client.carry(request, { id, name: names.get(id) ?? id }, scope)
    })

  return {
    ...sessionless(client.verify("/models")),
    name: "openai",
    family: "openai",
    embed,
    carry,
    listModels: client.listModels("/models", listedIds),
    carries,
    sendsNative: sendsNative(policy, options.tools),
    // Most self-hosted servers need no key; others refuse by themselves.
    capabilities: { login: false, sessions: false, anonymous: true, sampling: true },
    models: options.furtherModels,
    saysThinking: (model, thinking) => saysThinking(thinking, thinkingWords.get(model.id)),
    complete: (request) => client.complete(request, say)
  }
}
