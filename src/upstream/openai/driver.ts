/**
 * Completions by `POST {base_url}/chat/completions` of an OpenAI-compatible server. `compatible/driver.ts` has the rest of the server.
 */
import { chat } from "../../contracts/chat/contract.ts"
import { passesField, sendsStop, sendsVendorFields, sentStop } from "../../contracts/chat/writeRequest.ts"
import { unknownNames } from "../../contracts/shared/chatThinking.ts"
import { saysThinking } from "../../contracts/shared/serverThinking.ts"
import type { Cooperative } from "../../domain/stream/cooperative.ts"
import type { UpstreamModel } from "../../domain/UpstreamModel.ts"
import { cacheNames } from "../server/cacheName.ts"
import type { CompletionCall, ServerClient } from "../server/ServerClient.ts"
import { namesOf } from "../server/serverDriver.ts"
import type { ServerSettings } from "../server/ServerOptions.ts"
import { type CompletionRequest, sendsNothing, type ServedContract } from "../Upstream.ts"
import { OutputLimit } from "./outputLimit.ts"

/** Makes the part of a driver that is the contract's own. */
export const serveChat = (client: ServerClient, settings: ServerSettings): ServedContract => {
  const policy = settings.fields
  const tools = settings.tools === "prompt" ? "prompt" : "native"
  const nameOf = namesOf(settings)
  const thinking = new Map(settings.models.map((model) => [model.id, model.thinking]))
  const wordsOf = ({ id }: UpstreamModel) => thinking.get(id)
  const names = unknownNames()
  const outputLimit = new OutputLimit(settings.baseUrl)
  const caches = cacheNames(settings, "openai")

  function* say(request: CompletionRequest): Cooperative<CompletionCall> {
    const { isWhole, model } = request
    const asked = nameOf(model)
    const conversation = caches.named(request)
    const sampling = outputLimit.said(model.id, conversation.sampling)
    const body = yield* chat.writeRequest(
      asked.name,
      sampling === conversation.sampling ? conversation : { ...conversation, sampling },
      { tools, words: wordsOf(model), history: settings.historyReasoning, names, policy },
      isWhole
    )
    return {
      model: asked,
      path: "/chat/completions",
      body,
      headers: caches.headers(request),
      id: `chatcmpl-${crypto.randomUUID().replaceAll("-", "")}`,
      chunks: chat.readReply({
        stop: sentStop(tools, conversation),
        names,
        counted: ({ completionTokens = 0 }) =>
          outputLimit.counted(model.id, sampling, completionTokens / conversation.choices),
        choices: conversation.choices
      })
    }
  }

  return {
    contract: chat.id,
    sends: {
      ...sendsNothing,
      sampling: () => true,
      stop: (conversation) => sendsStop(tools, conversation),
      thinking: (model, thinking) => saysThinking(thinking, wordsOf(model)),
      fields: passesField(policy),
      vendorFields: sendsVendorFields(policy, tools)
    },
    complete: (request) => client.complete(request, say),
    capabilities: {}
  }
}
