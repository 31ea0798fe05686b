/**
 * The drivers `openai` and `responses`: any server with an OpenAI-compatible `POST {base_url}/chat/completions` or `/responses`. Their
 * addresses, keys, embeddings, relayed endpoints and lists of models are the same.
 */
import * as Effect from "effect/Effect"
import { readEmbeddings } from "../../contracts/chat/readEmbeddings.ts"
import { chunkDecoder } from "../../contracts/chat/readReply.ts"
import {
  chatRequest,
  passedFields,
  passesField,
  sendsStop,
  sendsVendorFields
} from "../../contracts/chat/writeRequest.ts"
import { httpErrorFacts } from "../../contracts/responses/errors.ts"
import { sendsEffort, unknownNames } from "../../contracts/shared/chatThinking.ts"
import { errorFacts, isError } from "../../contracts/shared/errorFacts.ts"
import { parseJson } from "../../contracts/shared/json.ts"
import { saysThinking } from "../../contracts/shared/serverThinking.ts"
import type { Conversation } from "../../domain/Conversation.ts"
import { isRecord } from "../../domain/json.ts"
import { onPath } from "../../domain/serverAddress.ts"
import type { Cooperative } from "../../domain/stream/cooperative.ts"
import { monotonicMillis } from "../../domain/time.ts"
import { UpstreamFailure } from "../../domain/UpstreamFailure.ts"
import type { UpstreamModel } from "../../domain/UpstreamModel.ts"
import type { Exchanges } from "../Exchange.ts"
import { isError as isResponseError, lacksEndpoint, makeResponsesApi, noCounts } from "../responses/driver.ts"
import { listedModels } from "../server/modelList.ts"
import {
  type CompletionCall,
  longestBody,
  longestVectors,
  makeServerClient,
  mostVectorValues,
  type ServerClient,
  slowestBody
} from "../server/ServerClient.ts"
import type { ServerOptions } from "../server/ServerOptions.ts"
import type { CompletionRequest, Driver, EmbeddingsRequest, RelayedRequest } from "../Upstream.ts"
import { ApiChoice } from "./apiChoice.ts"
import { cacheNames } from "./cacheName.ts"
import { askFurther } from "./furtherFacts.ts"
import { OutputLimit } from "./outputLimit.ts"

/** Models that are remembered. */
const mostSwitched = 1_000

/** Ollama's refusal of an amount of thinking, for all of its models but gpt-oss. */
const refusesEffort = ({ message = "", status }: UpstreamFailure): boolean =>
  status === 400 && /^think value .{1,40} is not supported\b/.test(message.slice(0, 200))

const makeDriver = (
  exchanges: Exchanges["Service"],
  options: ServerOptions,
  driverName: "openai" | "responses"
): Driver => {
  const { baseUrl, historyReasoning, limits } = options
  const tools = options.tools === "prompt" ? "prompt" : "native"
  const names = new Map(options.models.map((model) => [model.id, model.model]))
  const thinkingWords = new Map(options.models.map((model) => [model.id, model.thinking]))
  /** Models that take thinking on or off, as their refusals say. */
  const switched = new Set<string>()
  const wordsOf = ({ id }: UpstreamModel) => switched.has(id) ? "switch" : thinkingWords.get(id)
  const reasoningNames = unknownNames()
  const outputLimit = new OutputLimit(baseUrl)
  const policy = options.fields ?? "pass"
  const isPassed = passesField(policy)
  const choice = new ApiChoice(options, driverName === "responses" ? "responses" : "chat")
  const clientOf = (name: "openai" | "responses", address = baseUrl) =>
    makeServerClient(exchanges, {
      name,
      upstream: options.upstream,
      baseUrl: address,
      limits,
      wholeReplies: options.wholeReplies,
      credential: (key) => ({ authorization: `Bearer ${key}` }),
      credentialHeader: options.credentialHeader,
      forwardHeaders: options.forwardHeaders,
      errorFacts: name === "responses" ? httpErrorFacts : errorFacts,
      isError: name === "responses" ? isResponseError : isError,
      versionPrefix: "/v1"
    })
  const client = clientOf(choice.usual === "responses" ? "responses" : "openai")
  // What servers tell in their own APIs is beside the compatible one.
  const rootClient = clientOf("openai", onPath(baseUrl, (path) => path.replace(/\/v1$/, "")))

  const caches = cacheNames(options)

  function* say(request: CompletionRequest): Cooperative<CompletionCall> {
    const { isWhole, model } = request
    const asked = { id: model.id, name: names.get(model.id) ?? model.id }
    const conversation = caches.named(request)
    const sampling = outputLimit.said(model.id, conversation.sampling)
    const { body, stop } = yield* chatRequest(
      asked.name,
      sampling === conversation.sampling ? conversation : { ...conversation, sampling },
      tools,
      {
        words: wordsOf(model),
        history: historyReasoning,
        names: reasoningNames
      },
      policy,
      isWhole
    )
    return {
      model: asked,
      path: "/chat/completions",
      body,
      headers: caches.headers(request),
      id: `chatcmpl-${crypto.randomUUID().replaceAll("-", "")}`,
      chunks: chunkDecoder(
        stop,
        reasoningNames,
        undefined,
        ({ completionTokens = 0 }) => outputLimit.counted(model.id, sampling, completionTokens)
      )
    }
  }

  /** Makes embeddings in one call. */
  const embed = Effect.fnUntraced(function*(request: EmbeddingsRequest) {
    const { budget, callerHeaders, dimensions, fields = {}, inputs, model, token } = request
    const asked = { id: model.id, name: names.get(model.id) ?? model.id }
    const body = JSON.stringify({
      ...passedFields(fields, isPassed),
      model: asked.name,
      input: inputs,
      encoding_format: "float",
      ...(dimensions === undefined ? {} : { dimensions })
    })
    const path = "/embeddings"
    const exchange = yield* client.start("POST", path, token, "completion", body, undefined, budget, callerHeaders)
    const isRefusal = !client.isAnswer(exchange)
    const text = yield* exchange.text(
      isRefusal ? longestBody : longestVectors,
      isRefusal ? slowestBody : limits.firstByte
    )
    const parsed = isRefusal ? undefined : parseJson(text, mostVectorValues)
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

  const relay = (request: RelayedRequest) =>
    Effect.flatMap(Effect.scope, (scope) => {
      const { id } = request.model
      if (!request.budget.takeCall()) return Effect.fail(request.budget.noCallLeft("completion"))
      return client.relay(request, { id, name: names.get(id) ?? id }, scope)
    })

  const server = {
    name: driverName,
    verify: client.verify("/models"),
    embed,
    relay,
    listModels: client.listModels("/models", listedModels, askFurther(rootClient, options.upstream)),
    // Most self-hosted servers need no key; others refuse by themselves.
    isAnonymous: true,
    models: options.furtherModels
  }
  const chatDriver = (client: ServerClient): Driver => ({
    ...server,
    family: "openai",
    sends: {
      sampling: () => true,
      stop: (conversation) => sendsStop(tools, conversation),
      thinking: (model, thinking) => saysThinking(thinking, wordsOf(model)),
      fields: isPassed,
      vendorFields: sendsVendorFields(policy, tools)
    },
    complete: (request) => {
      const { conversation, model } = request
      const takesEffort = () => sendsEffort(conversation.thinking, wordsOf(model)) && switched.size < mostSwitched
      /** Whether the refusal tells words of the server that the request can be said in. */
      const learns = (failure: UpstreamFailure): boolean => {
        if (!takesEffort() || !refusesEffort(failure)) {
          return outputLimit.learnsFrom(model.id, conversation.sampling, failure)
        }
        switched.add(model.id)
        return true
      }
      const ask = () => client.complete(request, say)
      // At most once for each of the two: nothing is learned twice.
      return ask().pipe(Effect.catchIf(learns, ask), Effect.catchIf(learns, ask))
    }
  })
  const responsesDriver = (client: ServerClient): Driver => ({ ...server, ...makeResponsesApi(client, options) })
  if (choice.only === "chat") return chatDriver(client)
  if (choice.only === "responses") return responsesDriver(client)

  const chat = chatDriver(choice.usual === "chat" ? client : clientOf("openai"))
  const responses = responsesDriver(choice.usual === "responses" ? client : clientOf("responses"))
  const list = Effect.fnUntraced(function*(token: string | undefined) {
    const exchange = yield* client.start("GET", "/models", token, "session")
    const text = yield* client.readBody(exchange)
    return client.isAnswer(exchange) ? parseJson(text) : undefined
  }, Effect.scoped)
  const choose: NonNullable<Driver["choose"]> = (model, conversation, now) =>
    choice.apiOf(model, conversation, now) === "responses" ? knowing : chat
  /** Learns from a refusal that the server has no such endpoint. */
  const knowing: Driver = {
    ...responses,
    complete: (request) =>
      Effect.tapError(responses.complete(request), (failure) =>
        lacksEndpoint(failure) && choice.isAuto
          ? Effect.clockWith((clock) => Effect.sync(() => choice.lacksResponses(monotonicMillis(clock))))
          : Effect.void)
  }
  const chosenFor = (model: UpstreamModel, conversation: Conversation) =>
    Effect.clockWith((clock) => Effect.succeed(choose(model, conversation, monotonicMillis(clock))))
  return {
    ...(choice.usual === "responses" ? responses : chat),
    families: ["responses"],
    seals: responses.seals,
    compaction: responses.compaction,
    choose,
    ...(choice.isAuto ? { prepare: (token, now) => choice.read(list(token), now) } : {}),
    complete: (request) =>
      Effect.flatMap(chosenFor(request.model, request.conversation), (driver) => driver.complete(request)),
    countTokens: (request) =>
      Effect.flatMap(
        chosenFor(request.model, request.conversation),
        (driver) => driver.countTokens?.(request) ?? Effect.fail(noCounts)
      )
  }
}

/** Makes the driver `openai`: an OpenAI-compatible server, asked by chat completions. */
export const makeOpenAiDriver = (exchanges: Exchanges["Service"], options: ServerOptions): Driver =>
  makeDriver(exchanges, options, "openai")

/** Makes the driver `responses`: an OpenAI-compatible server, asked by the Responses API. */
export const makeResponsesDriver = (exchanges: Exchanges["Service"], options: ServerOptions): Driver =>
  makeDriver(exchanges, options, "responses")
