/**
 * The `generate` driver: any server with `POST {base_url}/v1beta/models/{model}:generateContent` and `:streamGenerateContent`.
 */
import * as Effect from "effect/Effect"
import { startCooperatively } from "../../config/clock/cooperative.ts"
import { generate } from "../../contracts/generate/contract.ts"
import { embedBody, readEmbeddings } from "../../contracts/generate/readEmbeddings.ts"
import { sendsField, sentVendorFields } from "../../contracts/generate/sentFields.ts"
import { generateRequest, samplingNames } from "../../contracts/generate/writeRequest.ts"
import { translatedThinking } from "../../contracts/shared/serverThinking.ts"
import { onPath } from "../../domain/serverAddress.ts"
import type { Cooperative } from "../../domain/stream/cooperative.ts"
import { UpstreamFailure } from "../../domain/UpstreamFailure.ts"
import type { Exchanges } from "../Exchange.ts"
import { generateModels, mostListed } from "../server/modelList.ts"
import { type CompletionCall, makeServerClient } from "../server/ServerClient.ts"
import { countBy, embedBy, inBatches, namesOf, serverDriver } from "../server/serverDriver.ts"
import { type ServerOptions, settingsOf } from "../server/ServerOptions.ts"
import { type CompletionRequest, type CountRequest, type Driver, sendsNothing } from "../Upstream.ts"

/** The name of a model as a resource: names with a collection, such as `tunedModels/mine`, are resources already. */
const resourceOf = (name: string): string =>
  (name.includes("/") ? name : `models/${name}`).split("/").map(encodeURIComponent).join("/")

/** True for an address with a version, such as `/v1beta`. */
const isVersioned = (baseUrl: string): boolean => /\/v\d[^/]*(?:\/|$)/.test(new URL(baseUrl).pathname)

/** The refusal of token ids, which the contract does not have. */
const embedsTexts = new UpstreamFailure({
  phase: "completion",
  kind: "refused",
  status: 400,
  message: "it embeds texts, not token ids",
  param: "input"
})

/** Makes the driver `generate`: a server with the content-generation API. */
export const makeGenerateDriver = (exchanges: Exchanges["Service"], options: ServerOptions): Driver => {
  const settings = settingsOf(options)
  const own = sentVendorFields(settings.fields)
  const thinking = new Map(settings.models.map((model) => [model.id, model.thinking]))
  const nameOf = namesOf(settings)
  const { baseUrl } = settings
  const address = isVersioned(baseUrl) ? baseUrl : onPath(baseUrl, (path) => `${path}/v1beta`)
  const client = makeServerClient(exchanges, { ...settings, baseUrl: address }, {
    contract: generate,
    headers: {},
    credential: (key) => ({ "x-goog-api-key": key }),
    versionPrefix: undefined
  })

  /** The body of a request for a model. */
  const bodyOf = ({ conversation, model }: Pick<CompletionRequest, "conversation" | "model">) =>
    generateRequest(conversation, {
      model: { model, name: nameOf(model).name, words: thinking.get(model.id) },
      own,
      history: settings.historyReasoning
    })

  function* say(request: CompletionRequest): Cooperative<CompletionCall> {
    const model = nameOf(request.model)
    const method = request.isWhole === true ? "generateContent" : "streamGenerateContent?alt=sse"
    return {
      model,
      path: `/${resourceOf(model.name)}:${method}`,
      body: JSON.stringify(yield* bodyOf(request)),
      headers: undefined,
      id: crypto.randomUUID().replaceAll("-", ""),
      chunks: generate.readReply({ isOwn: request.client === generate.id })
    }
  }

  /** Makes embeddings in one call. */
  const embed = inBatches(generate.facts.limits.texts, (request) => {
    const model = nameOf(request.model)
    const resource = resourceOf(model.name)
    const body = embedBody(resource, request)
    const path = `/${resource}:batchEmbedContents`
    return body === undefined
      ? Effect.fail(embedsTexts)
      : embedBy(client, request, { model, path, body: JSON.stringify(body), read: readEmbeddings })
  })

  const countTokens = Effect.fnUntraced(function*(request: CountRequest) {
    const model = nameOf(request.model)
    const resource = resourceOf(model.name)
    const body = yield* startCooperatively(bodyOf(request))
    return yield* countBy(client, request, {
      model,
      path: `/${resource}:countTokens`,
      body: JSON.stringify({ generateContentRequest: { model: resource, ...body } }),
      headers: undefined,
      field: "totalTokens"
    })
  })

  return serverDriver(client, settings, {
    path: "/models",
    query: `?pageSize=${mostListed}`,
    read: generateModels,
    ask: undefined
  }, {
    name: generate.id,
    contract: generate.id,
    sends: {
      ...sendsNothing,
      sampling: (name) => samplingNames[name] !== undefined,
      stop: () => true,
      thinking: (model) => thinking.get(model.id) !== "none",
      fields: (name) => translatedThinking.has(name),
      vendorFields: sendsField(settings.fields)
    },
    complete: (request) => client.complete(request, say),
    capabilities: { embed, countTokens }
  })
}
