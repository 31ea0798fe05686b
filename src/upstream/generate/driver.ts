/**
 * The `generate` driver: any server with `POST {base_url}/v1beta/models/{model}:generateContent` and `:streamGenerateContent`.
 */
import * as Effect from "effect/Effect"
import { startCooperatively } from "../../config/clock/cooperative.ts"
import type { SentVendorFields } from "../../contracts/generate/contents.ts"
import { errorFacts, isError } from "../../contracts/generate/errors.ts"
import { embedBody, readEmbeddings } from "../../contracts/generate/readEmbeddings.ts"
import { chunkDecoder } from "../../contracts/generate/readReply.ts"
import { generateRequest, samplingNames } from "../../contracts/generate/writeRequest.ts"
import { saidWords } from "../../contracts/generate/writeThinking.ts"
import type { FieldPolicy } from "../../contracts/shared/fieldPolicy.ts"
import { asCount, parseJson } from "../../contracts/shared/json.ts"
import type { Conversation } from "../../domain/Conversation.ts"
import { isRecord, type JsonFields } from "../../domain/json.ts"
import { isFields } from "../../domain/replyExtras.ts"
import { onPath } from "../../domain/serverAddress.ts"
import type { Cooperative } from "../../domain/stream/cooperative.ts"
import { UpstreamFailure } from "../../domain/UpstreamFailure.ts"
import type { UpstreamModel } from "../../domain/UpstreamModel.ts"
import type { Exchanges } from "../Exchange.ts"
import { generateModels, mostListed } from "../server/modelList.ts"
import {
  type CompletionCall,
  longestBody,
  longestVectors,
  makeServerClient,
  mostVectorValues,
  slowestBody
} from "../server/ServerClient.ts"
import type { ServerOptions } from "../server/ServerOptions.ts"
import type { CompletionRequest, CountRequest, Driver, EmbeddingsRequest } from "../Upstream.ts"

/** The name of a model as a resource: names with a collection, such as `tunedModels/mine`, are resources already. */
const resourceOf = (name: string): string =>
  (name.includes("/") ? name : `models/${name}`).split("/").map(encodeURIComponent).join("/")

/** True for an address with a version, such as `/v1beta`. */
const isVersioned = (baseUrl: string): boolean => /\/v\d[^/]*(?:\/|$)/.test(new URL(baseUrl).pathname)

/** Fields that the gateway translates for servers of other contracts; `upstream.fields` does not concern them. */
const translatedFields: ReadonlySet<string> = new Set(
  ("systemInstruction role thoughtSignature inlineData fileData functionResponse executableCode codeExecutionResult")
    .split(" ")
)
const translatedSettings: ReadonlySet<string> = new Set(
  "responseMimeType response_mime_type responseSchema responseJsonSchema thinkingConfig".split(" ")
)

/** Tells whether a field of the vendor is sent as it stands. */
const sendsField = (policy: FieldPolicy): (name: string) => boolean => {
  if (policy === "pass") return () => true
  const allowed = new Set(policy === "drop" ? [] : policy)
  return (name) => translatedFields.has(name) || allowed.has(name)
}

const only = (fields: JsonFields, isKept: (name: string) => boolean): JsonFields =>
  Object.fromEntries(Object.entries(fields).filter(([name]) => isKept(name)))

/** Reads the vendor's own fields of elements, as far as `upstream.fields` lets them pass. */
const sentVendorFields = (policy: FieldPolicy): SentVendorFields => {
  const sends = sendsField(policy)
  return ({ vendorFields }) => {
    if (vendorFields?.vendor !== "generate") return undefined
    if (policy === "pass") return vendorFields
    const fields = only(vendorFields.fields, sends)
    const config = vendorFields.fields["generationConfig"]
    if (vendorFields.wholeElement === true) {
      return Object.keys(fields).length === 0
        ? undefined
        : { ...vendorFields, fields }
    }
    return isFields(config) && fields["generationConfig"] === undefined
      ? {
        ...vendorFields,
        fields: { ...fields, generationConfig: only(config, (name) => translatedSettings.has(name)) }
      }
      : { ...vendorFields, fields }
  }
}

/** Makes the driver `generate`: a server with the content-generation API. */
export const makeGenerateDriver = (exchanges: Exchanges["Service"], options: ServerOptions): Driver => {
  const { historyReasoning, limits } = options
  const policy = options.fields ?? "pass"
  const own = sentVendorFields(policy)
  const entries = new Map(options.models.map((model) => [model.id, model]))
  const client = makeServerClient(exchanges, {
    name: "generate",
    upstream: options.upstream,
    baseUrl: isVersioned(options.baseUrl) ? options.baseUrl : onPath(options.baseUrl, (path) => `${path}/v1beta`),
    limits,
    wholeReplies: options.wholeReplies,
    credential: (key) => ({ "x-goog-api-key": key }),
    credentialHeader: options.credentialHeader,
    forwardHeaders: options.forwardHeaders,
    errorFacts,
    isError
  })
  const asked = ({ id }: UpstreamModel) => ({ id, name: entries.get(id)?.model ?? id })

  /** The body of a request for a model. */
  const bodyOf = (conversation: Conversation, model: UpstreamModel, name: string) =>
    generateRequest(conversation, {
      model: { model, name, words: entries.get(model.id)?.thinking },
      own,
      history: historyReasoning
    })

  function* say({ conversation, isWhole, model }: CompletionRequest): Cooperative<CompletionCall> {
    const requested = asked(model)
    return {
      model: requested,
      path: `/${resourceOf(requested.name)}:${isWhole === true ? "generateContent" : "streamGenerateContent?alt=sse"}`,
      body: JSON.stringify(yield* bodyOf(conversation, model, requested.name)),
      id: crypto.randomUUID().replaceAll("-", ""),
      chunks: chunkDecoder()
    }
  }

  /** Makes embeddings in one call. */
  const embed = Effect.fnUntraced(function*(request: EmbeddingsRequest) {
    const requested = asked(request.model)
    const resource = resourceOf(requested.name)
    const body = embedBody(resource, request)
    if (body === undefined) {
      return yield* new UpstreamFailure({
        phase: "completion",
        kind: "refused",
        status: 400,
        message: "it embeds texts, not token ids",
        param: "input"
      })
    }
    const path = `/${resource}:batchEmbedContents`
    const { budget, callerHeaders, token } = request
    const json = JSON.stringify(body)
    const exchange = yield* client.start("POST", path, token, "completion", json, undefined, budget, callerHeaders)
    const isRefusal = !client.isAnswer(exchange)
    const text = yield* exchange.text(
      isRefusal ? longestBody : longestVectors,
      isRefusal ? slowestBody : limits.firstByte
    )
    const reply = isRefusal ? undefined : readEmbeddings(parseJson(text, mostVectorValues), request.inputs.length)
    return reply ?? (yield* yield* client.refusal("completion", exchange, text, token, requested))
  }, Effect.scoped)

  const countTokens = Effect.fnUntraced(function*({ callerHeaders, conversation, model, token }: CountRequest) {
    const requested = asked(model)
    const resource = resourceOf(requested.name)
    const request = yield* startCooperatively(bodyOf(conversation, model, requested.name))
    const body = JSON.stringify({ generateContentRequest: { model: resource, ...request } })
    const path = `/${resource}:countTokens`
    const exchange = yield* client.start("POST", path, token, "completion", body, undefined, undefined, callerHeaders)
    const text = yield* client.readBody(exchange)
    const parsed = client.isAnswer(exchange) ? parseJson(text) : undefined
    const count = asCount(isRecord(parsed) ? parsed["totalTokens"] : undefined)
    return count ?? (yield* yield* client.refusal("completion", exchange, text, token, requested))
  }, Effect.scoped)

  return {
    verify: client.verify("/models"),
    listModels: client.listModels(`/models?pageSize=${mostListed}`, generateModels),
    name: "generate",
    family: "generate",
    sends: {
      sampling: (name) => samplingNames[name] !== undefined,
      stop: () => true,
      thinking: (model) => entries.get(model.id)?.thinking !== "none",
      fields: (name) => saidWords.has(name),
      vendorFields: sendsField(policy)
    },
    embed,
    countTokens,
    isAnonymous: true,
    models: options.furtherModels,
    complete: (request) => client.complete(request, say)
  }
}
