/**
 * Completions by the Responses API of an OpenAI-compatible server, `POST {base_url}/responses`. `compatible/driver.ts` has the rest of the
 * server.
 */
import { responses } from "../../contracts/responses/contract.ts"
import { makeSeals } from "../../contracts/responses/seals.ts"
import {
  compactRequest,
  countRequest,
  leastOutputTokens,
  ownRequest,
  sendsField,
  sendsSampling,
  sendsVendorField
} from "../../contracts/responses/writeRequest.ts"
import { saysThinking } from "../../contracts/shared/serverThinking.ts"
import type { Conversation } from "../../domain/Conversation.ts"
import type { Cooperative } from "../../domain/stream/cooperative.ts"
import { headersFor } from "../../domain/VendorFields.ts"
import { cacheNames } from "../server/cacheName.ts"
import { MissingEndpoint } from "../server/MissingEndpoint.ts"
import type { CompletionCall, ServerClient } from "../server/ServerClient.ts"
import { namesOf } from "../server/serverDriver.ts"
import type { ServerSettings } from "../server/ServerOptions.ts"
import { type CompletionRequest, type Seals, sendsNothing, type ServedContract } from "../Upstream.ts"
import { makeCounts } from "./counts.ts"
import { KnownModels } from "./KnownModels.ts"
import { forgetOn } from "./stored.ts"

/** Makes the part of a driver that is the contract's own. */
export const serveResponses = (client: ServerClient, settings: ServerSettings): ServedContract => {
  const policy = settings.fields
  const nameOf = namesOf(settings)
  const models = new KnownModels(settings)
  const isNative = (conversation: Conversation): boolean => models.speaks && ownRequest(conversation) !== undefined
  const caches = cacheNames(settings, "responses")

  function* say(request: CompletionRequest, now: number): Cooperative<CompletionCall> {
    const model = nameOf(request.model)
    const options = models.optionsOf(request.model, now)
    const conversation = caches.named(request)
    const compacts = conversation.vendorFields?.compacts === true
    return {
      model,
      path: compacts ? "/responses/compact" : "/responses",
      body: compacts
        ? yield* compactRequest(model.name, conversation, options)
        : yield* responses.writeRequest(model.name, conversation, options, request.isWhole),
      headers: { ...headersFor(conversation, "responses"), ...caches.headers(request) },
      id: `resp_${crypto.randomUUID().replaceAll("-", "")}`,
      chunks: responses.readReply({
        passesEvents: isNative(conversation),
        onThinking: () => models.thinks(request.model, now),
        budget: request.budget
      })
    }
  }

  const compacting = new MissingEndpoint()
  const compaction = {
    always: settings.compaction === "server",
    works: (now: number) => !compacting.isMissing(now),
    failed: (now: number) => compacting.learn(now)
  }

  const seals: Seals = {
    ...makeSeals(isNative, models),
    forget: forgetOn(client)
  }

  const sendsParameter = sendsSampling(policy)
  return {
    contract: models.speaks ? responses.id : undefined,
    sends: {
      ...sendsNothing,
      contract: responses.id,
      sampling: (name, _, conversation) => sendsParameter(name, isNative(conversation)),
      leastOutput: leastOutputTokens,
      thinking: (model, said) => saysThinking(said, models.thinkingOf(model)),
      fields: sendsField(policy),
      vendorFields: sendsVendorField(policy)
    },
    complete: (request) => client.complete(request, say),
    capabilities: {
      seals,
      compaction: models.speaks && settings.compaction !== "gateway" ? compaction : undefined,
      countTokens: makeCounts(client, seals, ({ conversation, model }, now) => ({
        model: nameOf(model),
        body: countRequest(nameOf(model).name, conversation, models.optionsOf(model, now))
      }))
    }
  }
}
