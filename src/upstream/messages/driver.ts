/**
 * The `messages` driver: any server with `POST {base_url}/v1/messages`.
 */
import * as Effect from "effect/Effect"
import { startCooperatively } from "../../config/clock/cooperative.ts"
import { messages } from "../../contracts/messages/contract.ts"
import { isOfContract } from "../../contracts/messages/family.ts"
import { countRequest, mayThink, unsampled } from "../../contracts/messages/writeRequest.ts"
import { passesUnwritten } from "../../contracts/shared/fieldPolicy.ts"
import { saysThinking, translatedThinking } from "../../contracts/shared/serverThinking.ts"
import { onPath } from "../../domain/serverAddress.ts"
import type { Cooperative } from "../../domain/stream/cooperative.ts"
import type { UpstreamModel } from "../../domain/UpstreamModel.ts"
import { headersFor } from "../../domain/VendorFields.ts"
import type { Exchanges } from "../Exchange.ts"
import { listedModels, mostListed, type TestedSchemas } from "../server/modelList.ts"
import { type CompletionCall, makeServerClient } from "../server/ServerClient.ts"
import { countBy, serverDriver } from "../server/serverDriver.ts"
import { type ServerOptions, settingsOf } from "../server/ServerOptions.ts"
import { type CompletionRequest, type CountRequest, type Driver, sendsNothing } from "../Upstream.ts"

const version = "2023-06-01"

/** Tokens of the vendor's own logins, and tokens that are configured with their scheme, are bearer tokens; others are keys. */
const credential = (token: string): { readonly [name: string]: string } =>
  /^Bearer\s/i.test(token)
    ? { authorization: token }
    : token.startsWith("sk-ant-oat")
    ? { authorization: `Bearer ${token}` }
    : { "x-api-key": token }

/** Tokens from which a prompt is marked: the least prefix that most of the vendor's models keep. */
const leastMarked = 1_024

/** What tested servers do with schemas in this contract. */
const testedSchemas: TestedSchemas = new Map([["vllm", "binding"], ["llamacpp", "advisory"], ["library", "advisory"]])

/** Makes the driver `messages`: a server with the messages API. */
export const makeMessagesDriver = (exchanges: Exchanges["Service"], options: ServerOptions): Driver => {
  const settings = settingsOf(options)
  const { promptCache } = settings
  const passes = passesUnwritten(settings.fields)
  const sends = (name: string) => isOfContract(name) || passes(name)
  const entries = new Map(settings.models.map((model) => [model.id, model]))
  const baseUrl = onPath(settings.baseUrl, (path) => path.replace(/\/v1$/, ""))
  const client = makeServerClient(exchanges, { ...settings, baseUrl }, {
    contract: messages,
    headers: { "anthropic-version": version },
    credential,
    versionPrefix: undefined
  })
  const asked = ({ id }: UpstreamModel) => {
    const { max_tokens: maxTokens, model: name = id, thinking } = entries.get(id) ?? {}
    return { model: { id, name }, options: { maxTokens, thinking, sends } }
  }

  const { breakpoints, mark_ttl: ttl = "5m" } = promptCache ?? {}

  function* say(
    { conversation, hasSession = false, isWhole, leastCached = leastMarked, model: requested }: CompletionRequest
  ): Cooperative<CompletionCall> {
    const { model, options } = asked(requested)
    const marks = breakpoints === "auto"
      ? { ttl, minTokens: promptCache?.min_tokens ?? leastCached, hasSession }
      : undefined
    return {
      model,
      path: "/v1/messages",
      body: yield* messages.writeRequest(model.name, conversation, { ...options, marks }, isWhole),
      headers: headersFor(conversation, messages.id),
      id: crypto.randomUUID().replaceAll("-", ""),
      chunks: messages.readReply()
    }
  }

  const countTokens = Effect.fnUntraced(function*(request: CountRequest) {
    const { conversation } = request
    const { model, options } = asked(request.model)
    return yield* countBy(client, request, {
      model,
      path: "/v1/messages/count_tokens",
      body: yield* startCooperatively(countRequest(model.name, conversation, { ...options, marks: undefined })),
      headers: headersFor(conversation, messages.id),
      field: "input_tokens"
    })
  })

  return serverDriver(client, settings, {
    path: "/v1/models",
    query: `?limit=${mostListed}`,
    read: (body) => listedModels(body, testedSchemas),
    ask: undefined
  }, {
    name: messages.id,
    contract: messages.id,
    sends: {
      ...sendsNothing,
      sampling: (name, model, conversation) => !unsampled(conversation, asked(model).options.thinking).includes(name),
      thinking: (model, thinking, conversation) =>
        saysThinking(thinking, asked(model).options.thinking ?? "budget") &&
        (thinking.mode === "off" || conversation === undefined || mayThink(conversation)),
      fields: (name) => translatedThinking.has(name),
      vendorFields: (name, path) => path !== "" || sends(name)
    },
    complete: (request) => client.complete(request, say),
    capabilities: { countTokens }
  })
}
