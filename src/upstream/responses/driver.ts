/**
 * Completions by the Responses API of an OpenAI-compatible server, `POST {base_url}/responses`. The rest of the server is the business of
 * the `openai` driver.
 */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { startCooperatively } from "../../config/clock/cooperative.ts"
import { isOfContract } from "../../contracts/responses/family.ts"
import { eventDecoder } from "../../contracts/responses/readReply.ts"
import { makeSeals, refusesSeal } from "../../contracts/responses/seals.ts"
import {
  compactRequest,
  countRequest,
  leastOutputTokens,
  type ModelOptions,
  ownRequest,
  responsesRequest,
  samplingNames,
  sendsField
} from "../../contracts/responses/writeRequest.ts"
import { isError as isOtherError } from "../../contracts/shared/errorFacts.ts"
import { passes } from "../../contracts/shared/fieldPolicy.ts"
import { asCount, parseJson } from "../../contracts/shared/json.ts"
import { saysThinking } from "../../contracts/shared/serverThinking.ts"
import { refusesModel } from "../../domain/classifyUpstreamFailure.ts"
import type { Conversation, Sampling, SamplingNames } from "../../domain/Conversation.ts"
import { isRecord, type JsonRecord } from "../../domain/json.ts"
import type { Cooperative } from "../../domain/stream/cooperative.ts"
import { monotonicMillis } from "../../domain/time.ts"
import { UpstreamFailure } from "../../domain/UpstreamFailure.ts"
import type { UpstreamModel } from "../../domain/UpstreamModel.ts"
import { cacheNames } from "../openai/cacheName.ts"
import { LearnedModels } from "../server/LearnedModels.ts"
import type { CompletionCall, ServerClient } from "../server/ServerClient.ts"
import type { ServerModel, ServerOptions } from "../server/ServerOptions.ts"
import type { CompletionRequest, CountRequest, Driver, Seals, ServerCompaction } from "../Upstream.ts"

/** True if an object is an error instead of a response, which has an `error` that is `null`. */
export const isError = (value: JsonRecord): boolean => value["type"] === "error" || isOtherError(value)

/** Milliseconds for which a server without an endpoint is not asked for it again. */
export const missingFor = 10 * 60_000

/** True for the refusal of a server that does not have the endpoint, and not of one that lacks the model. */
export const lacksEndpoint = (failure: UpstreamFailure): boolean =>
  failure.kind === "refused" && !refusesModel(failure) && !refusesSeal(failure) &&
  (failure.status === 404 || failure.status === 405 || failure.status === 501)

/** The failure of a server that counts no tokens. */
export const noCounts = new UpstreamFailure({ phase: "completion", kind: "refused", status: 501 })

/** The fields by which callers of the contract write parameters, also those that it does not have. */
const ownNames: SamplingNames = {
  temperature: "temperature",
  topP: "top_p",
  topK: "top_k",
  maxTokens: "max_output_tokens",
  maxCompletionTokens: "max_output_tokens",
  seed: "seed",
  presencePenalty: "presence_penalty",
  frequencyPenalty: "frequency_penalty",
  logitBias: "logit_bias"
}

/** Tells whether callers of the contract send a parameter by one of its own fields, or by one that the policy passes. */
const sendsOwn = (name: keyof Sampling, isPassed: (field: string) => boolean): boolean => {
  const field = ownNames[name]
  return field !== undefined && (isOfContract(field) || isPassed(field))
}

/** The headers of a caller of this contract. */
const headersOf = ({ vendorFields }: Conversation) =>
  vendorFields?.vendor === "responses" ? vendorFields.headers : undefined

/** The part of a driver that is the API's own. */
export type ResponsesApi = Pick<Driver, "compaction" | "family" | "sends" | "seals" | "complete" | "countTokens">

/** Makes the API's part of a driver. */
export const makeResponsesApi = (client: ServerClient, options: ServerOptions): ResponsesApi => {
  const entries = new Map<string, ServerModel>(options.models.map((model) => [model.id, model]))
  const policy = options.fields ?? "pass"
  const isPassed = passes(policy)
  /** Models that have sent their thinking itself, which the server reads then, and those whose thinking it has refused. */
  const thoughts = new LearnedModels()
  const unread = new LearnedModels()
  const readsThinking = (model: UpstreamModel, now: number) => thoughts.has(model, now) && !unread.has(model, now)
  /** The server gets the tools and items of the contract as the caller wrote them. */
  const speaks = (options.tools ?? "native") === "native"
  /** Models that refuse to seal thinking, because they have none. */
  const sealless = new LearnedModels()
  const asked = (model: UpstreamModel, now: number) => {
    const entry = entries.get(model.id)
    const said: ModelOptions = {
      speaks,
      tools: options.tools === "prompt" ? "prompt" : "native",
      words: entry?.thinking,
      seals: entry?.thinking !== "none" && !sealless.has(model, now),
      shows: model.reasoning,
      policy,
      history: options.historyReasoning,
      readsThinking: readsThinking(model, now)
    }
    return { model: { id: model.id, name: entry?.model ?? model.id }, said }
  }

  const caches = cacheNames(options)

  function* say(request: CompletionRequest, now: number): Cooperative<CompletionCall> {
    const { isWhole, model: requested } = request
    const { model, said } = asked(requested, now)
    const conversation = caches.named(request)
    const compacts = conversation.vendorFields?.compacts === true
    return {
      model,
      path: compacts ? "/responses/compact" : "/responses",
      body: compacts
        ? yield* compactRequest(model.name, conversation, said)
        : yield* responsesRequest(model.name, conversation, said, isWhole),
      headers: { ...headersOf(conversation), ...caches.headers(request) },
      id: `resp_${crypto.randomUUID().replaceAll("-", "")}`,
      chunks: eventDecoder({
        passesEvents: isNative(conversation),
        onThinking: () => thoughts.learn(requested, now),
        budget: request.budget
      })
    }
  }

  const isNative = (conversation: Conversation): boolean => speaks && ownRequest(conversation) !== undefined

  /** True for the first refusal of what the gateway asks for by itself. */
  const refusesSeals = (
    { conversation, model }: CompletionRequest,
    failure: UpstreamFailure,
    now: number
  ): boolean => {
    const { message = "", status } = failure
    return status === 400 && !refusesSeal(failure) && !isNative(conversation) && !sealless.has(model, now) &&
      /encrypted[ _.]content/i.test(message.slice(0, 2_000))
  }

  const forget: Seals["forget"] = Effect.fnUntraced(function*(token, id) {
    const path = `/responses/${encodeURIComponent(id)}`
    yield* client.readBody(yield* client.start("DELETE", path, token, "session"))
  }, Effect.scoped)

  /** Monotonic milliseconds up to which the server is known to compact nothing. */
  let compactsFrom = -Infinity
  const compaction: ServerCompaction = {
    always: options.compaction === "server",
    works: (now) => now >= compactsFrom,
    failed: (now) => {
      compactsFrom = now + missingFor
    }
  }

  const seals: Seals = {
    ...makeSeals(isNative, { isRead: readsThinking, refused: (model, now) => unread.learn(model, now) }),
    forget
  }

  /** Monotonic milliseconds up to which the server is known not to count tokens. */
  let countsFrom = -Infinity

  const count = Effect.fnUntraced(function*(
    { callerHeaders, conversation, model: requested, token }: CountRequest,
    now: number
  ) {
    const { model, said } = asked(requested, now)
    const body = yield* startCooperatively(countRequest(model.name, conversation, said))
    const headers = headersOf(conversation)
    const path = "/responses/input_tokens"
    const exchange = yield* client.start("POST", path, token, "completion", body, headers, undefined, callerHeaders)
    const text = yield* client.readBody(exchange)
    const parsed = client.isAnswer(exchange) ? parseJson(text) : undefined
    const tokens = asCount(isRecord(parsed) ? parsed["input_tokens"] : undefined)
    return tokens ?? (yield* yield* client.refusal("completion", exchange, text, token, model))
  }, Effect.scoped)

  /** Counts, and once more in plain form if the server refuses what it cannot read or find. */
  const countPlain = (request: CountRequest, now: number): Effect.Effect<number, UpstreamFailure> =>
    Effect.catch(count(request, now), (failure) => {
      const repeated = seals.repeated(failure, request.conversation, request.model, now, false)
      return repeated === undefined
        ? Effect.fail(failure)
        : Effect.map(count({ ...request, conversation: repeated.conversation }, now), (tokens) => {
          repeated.taken(now)
          return tokens
        })
    })

  const countTokens = (request: CountRequest): Effect.Effect<number, UpstreamFailure> =>
    Effect.clockWith((clock: Clock.Clock) =>
      monotonicMillis(clock) < countsFrom
        ? Effect.fail(noCounts)
        : Effect.tapError(countPlain(request, monotonicMillis(clock)), (failure) =>
          Effect.sync(() => {
            if (lacksEndpoint(failure)) countsFrom = monotonicMillis(clock) + missingFor
          }))
    )

  return {
    ...(speaks ? { family: "responses" as const } : {}),
    ...(speaks && options.compaction !== "gateway" ? { compaction } : {}),
    sends: {
      sampling: (name, _, conversation) =>
        isNative(conversation) ? sendsOwn(name, isPassed) : samplingNames[name] !== undefined,
      leastOutput: leastOutputTokens,
      thinking: (model, said) => saysThinking(said, entries.get(model.id)?.thinking),
      fields: sendsField(policy),
      vendorFields: (name, path) => path !== "" || isOfContract(name) || isPassed(name)
    },
    seals,
    complete: (request) => {
      let askedAt = -Infinity
      const ask = () =>
        client.complete(request, (asked, now) => {
          askedAt = now
          return say(asked, now)
        })
      return Effect.catchIf(ask(), (failure) => refusesSeals(request, failure, askedAt), () => {
        sealless.learn(request.model, askedAt)
        return ask()
      })
    },
    countTokens
  }
}
