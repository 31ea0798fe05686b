/**
 * Handlers of the Responses endpoints.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { CompletedReply, CompletionOutput } from "../../completion/Completion.ts"
import { noteIgnored } from "../../completion/ignored.ts"
import { runCooperatively, startCooperatively } from "../../config/clock/cooperative.ts"
import { GatewayError, gatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import { replyOf } from "../../domain/Reply.ts"
import { businessMiddleware } from "../../http/endpointMiddleware.ts"
import { groupRoutes, type HandlersOf } from "../../http/groupRoutes.ts"
import { holdPrompt, withRest } from "../../http/jsonBody.ts"
import { jsonText, respond } from "../../http/reply.ts"
import { CurrentCaller } from "../../http/RequestContext.ts"
import { beforeReply } from "../../http/WorkLimit.ts"
import { OpenAiMiddleware } from "../shared/middleware.ts"
import { findModel, makeResponder, type Opening } from "../shared/responder.ts"
import { type ResponseRequest, ResponsesGroup } from "./Api.ts"
import { keptTexts } from "./compaction/compactedItems.ts"
import { compactedResponse, continuing } from "./compaction/compactedResponse.ts"
import { asStream, makeCompactions } from "./compaction/Compactions.ts"
import { summaryRequest } from "./compaction/prompt.ts"
import { decodeResponse } from "./decode.ts"
import { responseId, responseSeed } from "./ids.ts"
import { listInputItems } from "./listItems.ts"
import { readCompactRequest, readCountRequest, readResponseRequest } from "./readRequest.ts"
import { responseFrames } from "./render.ts"
import { type DecodeOptions, storedReferences } from "./requestItems.ts"
import { inProgressText, responseInfo } from "./responseText.ts"
import { asText, jsonSizeSliced } from "./store/jsonSize.ts"
import { type OpenResponse, ResponsesStore, type StoredResponse } from "./store/ResponsesStore.ts"

/** A violated `tool_choice` concerns the model's reply, not the request, so the stream reports it (spec "States and transitions"). */
const reportsViolation = (id: string) => (opening: Opening): Opening =>
  Effect.catchIf(
    opening,
    (error) => error.code === "tool_choice_violation",
    (error): Effect.Effect<CompletionOutput> => Effect.succeed({ id, driver: "", events: Stream.fail(error) })
  )

const notFound = (id: string) =>
  gatewayError("not_found", `The response "${id.slice(0, 200)}" does not exist or has expired`)

export const ResponsesHandlers = groupRoutes(
  ResponsesGroup,
  Effect.gen(function*() {
    const responder = yield* makeResponder
    const store = yield* ResponsesStore
    const clock = yield* Clock.Clock
    const { askedFor, readSummary, sealed } = yield* makeCompactions

    const find = Effect.fnUntraced(function*(id: string) {
      const stored = yield* store.get((yield* CurrentCaller).owner, id)
      if (stored === undefined) return yield* notFound(id)
      return stored
    })

    const referenced = Effect.fnUntraced(function*(owner: string, request: ResponseRequest) {
      const found = new Map<string, StoredResponse>()
      for (const id of yield* runCooperatively(storedReferences(request))) {
        const stored = yield* store.get(owner, id)
        if (stored !== undefined) found.set(id, stored)
      }
      return found
    })

    return {
      countTokens: Effect.fnUntraced(function*({ endpoint, request }) {
        const sent = yield* readCountRequest(request)
        const { body } = sent
        const current = yield* responder.currentRequest
        const { caller, config, stats } = current
        const model = findModel(current, body.model)
        if (model instanceof GatewayError) return yield* model
        const { conversation, ignored, taken } = yield* Effect.fromResult(
          yield* startCooperatively(decodeResponse(body, {
            bodyVendorFields: sent.bodyVendorFields,
            wideInput: config.compat.wide_input_strict_output,
            stored: yield* referenced(caller.owner, body),
            limits: config.limits,
            readSummary
          }))
        )
        for (const path of ignored) noteIgnored(stats, path)
        if (taken > 0) yield* holdPrompt(taken)
        return respond(endpoint, {
          object: "response.input_tokens",
          input_tokens: yield* responder.countTokens(current, model, withRest(conversation, sent))
        })
      }),
      create: Effect.fnUntraced(function*({ request }) {
        const sent = yield* readResponseRequest(request)
        const { body } = sent
        const current = yield* responder.currentRequest
        const { caller, config, stats } = current
        const stream = stats.stream = body.stream === true
        const model = findModel(current, body.model)
        if (model instanceof GatewayError) return yield* model
        const options: DecodeOptions = {
          bodyVendorFields: sent.bodyVendorFields,
          wideInput: config.compat.wide_input_strict_output,
          stored: yield* referenced(caller.owner, body),
          limits: config.limits,
          readSummary
        }
        const decoded = yield* Effect.fromResult(yield* startCooperatively(decodeResponse(body, options)))
        const { asked, ignored, items, taken, targets } = decoded
        const conversation = withRest(decoded.conversation, sent)
        for (const path of ignored) noteIgnored(stats, path)
        if (taken > 0) yield* holdPrompt(taken)
        const seed = responseSeed(crypto.randomUUID())
        const id = responseId(seed)
        const now = () => clock.currentTimeMillisUnsafe()
        const info = responseInfo(seed, Math.floor(now() / 1000), body, targets)
        const keep = body.store !== false
        const itemsSize = keep ? yield* startCooperatively(jsonSizeSliced(items)) : 0
        // A caller may use any number of direct tokens, so they share one part of the store.
        const share = caller._tag === "Direct" ? "direct" : caller.owner

        const compaction = asked === undefined
          ? undefined
          : yield* askedFor(asked, conversation, body.model, (last) =>
            Effect.gen(function*() {
              const next = yield* startCooperatively(decodeResponse(body, { ...options, compaction: last }))
              return withRest((yield* Effect.fromResult(next)).conversation, sent)
            }))

        const whole = ({ events }: CompletedReply) => {
          let final = ""
          const finalized = (text: string) => {
            final = text
          }
          const { frames } = responseFrames(info, { now, finalized, compaction: compaction?.seal })
          for (const event of events) frames.push(event, [])
          const response = jsonText(final)
          return keep
            ? Effect.as(store.put(caller.owner, { id, body: final, items, itemsSize }, share), response)
            : Effect.succeed(response)
        }

        let stored: OpenResponse | undefined
        const renderer = responseFrames(info, {
          now,
          finalized: (text) => stored?.finalizeUnsafe(text),
          compaction: compaction?.seal
        })
        const start = () => {
          if (keep) {
            stored = store.openUnsafe(caller.owner, { id, body: inProgressText(info), items, itemsSize }, share)
          }
          return { ...renderer, pending: () => stored?.written() }
        }
        if (stream) {
          // When the client disconnects before the response is final, the response is stored as cancelled.
          const cancel = Effect.suspend(() => {
            renderer.cancel()
            return stored?.written() ?? Effect.void
          })
          yield* Scope.addFinalizer(yield* Effect.scope, cancel)
        }
        const alone = compaction?.alone
        const compacted = alone && Effect.flatMap(responder.whole(current, model, alone), alone.reply)
        if (compacted !== undefined && !stream) return yield* Effect.flatMap(compacted, whole)
        return yield* responder.respond(
          current,
          model,
          conversation,
          { stream, whole, frames: start, failure: (error) => start().failure(error), keepsText: true },
          compacted === undefined ? reportsViolation(id) : () => Effect.map(compacted, asStream),
          compaction?.before
        )
      }),
      compact: Effect.fnUntraced(function*({ endpoint, request }) {
        const sent = yield* readCompactRequest(request)
        const body = continuing(sent.body)
        if (body.stream === true) return yield* invalidRequest("stream: a compaction is sent whole", "stream")
        const current = yield* responder.currentRequest
        const { caller, config, created, stats } = current
        const model = findModel(current, body.model)
        if (model instanceof GatewayError) return yield* model
        const { conversation, ignored, items, taken } = yield* Effect.fromResult(
          yield* startCooperatively(decodeResponse(body, {
            bodyVendorFields: sent.bodyVendorFields,
            wideInput: config.compat.wide_input_strict_output,
            stored: yield* referenced(caller.owner, body),
            limits: config.limits,
            readSummary
          }))
        )
        for (const path of ignored) noteIgnored(stats, path)
        if (taken > 0) yield* holdPrompt(taken)
        const reply = yield* responder.whole(current, model, summaryRequest(withRest(conversation, sent)))
        const seal = yield* sealed(reply, body.model)
        const texts = yield* runCooperatively(keptTexts(items))
        return respond(
          endpoint,
          compactedResponse(crypto.randomUUID(), created, texts, seal, replyOf(reply.events).usage)
        )
      }),
      retrieve: Effect.fnUntraced(function*({ params, query }) {
        if (query.stream === "true") {
          return yield* invalidRequest("stream: a stored response is not streamed again", "stream")
        }
        const stored = yield* find(params.id)
        return jsonText(stored.body)
      }),
      remove: Effect.fnUntraced(function*({ endpoint, params }) {
        const { owner } = yield* CurrentCaller
        if (!(yield* store.remove(owner, params.id))) return yield* notFound(params.id)
        return respond(endpoint, { id: params.id, object: "response", deleted: true })
      }),
      inputItems: Effect.fnUntraced(function*({ endpoint, params, query }) {
        const stored = yield* find(params.id)
        const page = yield* runCooperatively(listInputItems(stored, query))
        // Returning the first page instead would make a paging client loop forever.
        if (page === undefined) {
          return yield* invalidRequest("after must be the id of one of the input items", "after")
        }
        yield* beforeReply(yield* runCooperatively(jsonSizeSliced(page.data, asText)))
        return respond(endpoint, page)
      })
    } satisfies HandlersOf<typeof ResponsesGroup>
  })
).pipe(
  Layer.provide(Layer.effect(OpenAiMiddleware, businessMiddleware(OpenAiMiddleware.facts)))
)
