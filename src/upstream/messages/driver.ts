/**
 * The `messages` driver: any server with `POST {base_url}/v1/messages`.
 */
import * as Effect from "effect/Effect"
import { startCooperatively } from "../../config/clock/cooperative.ts"
import { isOfContract } from "../../contracts/messages/family.ts"
import { eventDecoder, isError } from "../../contracts/messages/readReply.ts"
import { countRequest, mayThink, messagesRequest, unsampled } from "../../contracts/messages/writeRequest.ts"
import { errorFacts } from "../../contracts/shared/errorFacts.ts"
import { passesUnwritten } from "../../contracts/shared/fieldPolicy.ts"
import { asCount, parseJson } from "../../contracts/shared/json.ts"
import { saysThinking } from "../../contracts/shared/serverThinking.ts"
import { type Conversation, thinkingWords } from "../../domain/Conversation.ts"
import { isRecord } from "../../domain/json.ts"
import { onPath } from "../../domain/serverAddress.ts"
import type { Cooperative } from "../../domain/stream/cooperative.ts"
import type { UpstreamModel } from "../../domain/UpstreamModel.ts"
import type { Exchanges } from "../Exchange.ts"
import { listedModels, mostListed } from "../server/modelList.ts"
import { type CompletionCall, makeServerClient } from "../server/ServerClient.ts"
import type { ServerOptions } from "../server/ServerOptions.ts"
import type { CompletionRequest, CountRequest, Driver } from "../Upstream.ts"

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

/** The headers of a caller of this contract. */
const headersOf = ({ vendorFields }: Conversation) =>
  vendorFields?.vendor === "messages" ? vendorFields.headers : undefined

/** Fields of other servers for thinking, which is sent in the vendor's fields. */
const saidWords: ReadonlySet<string> = new Set(thinkingWords.filter((name) => name !== "chat_template_kwargs"))

/** Makes the driver `messages`: a server with the messages API. */
export const makeMessagesDriver = (exchanges: Exchanges["Service"], options: ServerOptions): Driver => {
  const { limits, promptCache } = options
  const passes = passesUnwritten(options.fields ?? "pass")
  const sends = (name: string) => isOfContract(name) || passes(name)
  const entries = new Map(options.models.map((model) => [model.id, model]))
  const client = makeServerClient(exchanges, {
    name: "messages",
    upstream: options.upstream,
    baseUrl: onPath(options.baseUrl, (path) => path.replace(/\/v1$/, "")),
    limits,
    wholeReplies: options.wholeReplies,
    headers: { "anthropic-version": version },
    credential,
    credentialHeader: options.credentialHeader,
    forwardHeaders: options.forwardHeaders,
    errorFacts,
    isError
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
      body: yield* messagesRequest(model.name, conversation, { ...options, marks }, isWhole),
      headers: headersOf(conversation),
      id: crypto.randomUUID().replaceAll("-", ""),
      chunks: eventDecoder()
    }
  }

  const countTokens = Effect.fnUntraced(
    function*({ callerHeaders, conversation, model: requested, token }: CountRequest) {
      const { model, options } = asked(requested)
      const body = yield* startCooperatively(countRequest(model.name, conversation, options))
      const exchange = yield* client.start(
        "POST",
        "/v1/messages/count_tokens",
        token,
        "completion",
        body,
        headersOf(conversation),
        undefined,
        callerHeaders
      )
      const text = yield* client.readBody(exchange)
      const parsed = client.isAnswer(exchange) ? parseJson(text) : undefined
      const count = asCount(isRecord(parsed) ? parsed["input_tokens"] : undefined)
      return count ?? (yield* yield* client.refusal("completion", exchange, text, token, model))
    },
    Effect.scoped
  )

  return {
    verify: client.verify("/v1/models"),
    listModels: client.listModels(`/v1/models?limit=${mostListed}`, listedModels),
    name: "messages",
    family: "messages",
    // Self-hosted servers need no key; others refuse by themselves.
    isAnonymous: true,
    sends: {
      sampling: (name, model, conversation) => !unsampled(conversation, asked(model).options.thinking).includes(name),
      thinking: (model, thinking, conversation) =>
        saysThinking(thinking, asked(model).options.thinking ?? "budget") &&
        (thinking.mode === "off" || conversation === undefined || mayThink(conversation)),
      fields: (name) => saidWords.has(name),
      vendorFields: (name, path) => path !== "" || sends(name)
    },
    models: options.furtherModels,
    complete: (request) => client.complete(request, say),
    countTokens
  }
}
