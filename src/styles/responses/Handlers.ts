/**
 * Handlers of the Responses endpoints.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { CompletedReply, CompletionOutput } from "../../completion/Completion.ts"
import { noteIgnored } from "../../completion/ignored.ts"
import { runCooperatively, startCooperatively } from "../../config/clock/cooperative.ts"
import { responseId, responseSeed } from "../../contracts/responses/ids.ts"
import type { Item } from "../../contracts/responses/items.ts"
import { responseInfo } from "../../contracts/responses/responseText.ts"
import type { ResponseRequest } from "../../contracts/responses/schema.ts"
import { responseFrames } from "../../contracts/responses/writeReply.ts"
import { gatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import type { Maker } from "../../domain/makers.ts"
import { replyOf } from "../../domain/Reply.ts"
import type { Route } from "../../domain/routes.ts"
import { businessMiddleware } from "../../http/endpointMiddleware.ts"
import { Entrance } from "../../http/Entrance.ts"
import { groupRoutes, type HandlersOf } from "../../http/groupRoutes.ts"
import { holdPrompt, type ReadRequest, withRest } from "../../http/jsonBody.ts"
import { jsonText, respond } from "../../http/reply.ts"
import { CurrentCaller } from "../../http/RequestContext.ts"
import { CurrentServing } from "../../http/Serving.ts"
import { beforeReply } from "../../http/WorkLimit.ts"
import { OpenAiMiddleware, UncountedMiddleware } from "../shared/middleware.ts"
import { makeResponder, type Opening, type RunningRequest } from "../shared/responder.ts"
import { ResponsesGroup } from "./Api.ts"
import { keptTexts } from "./compaction/compactedItems.ts"
import { compactedResponse, continuing } from "./compaction/compactedResponse.ts"
import { makeCompactions } from "./compaction/Compactions.ts"
import { decodeResponse } from "./decode.ts"
import { listInputItems } from "./listItems.ts"
import { betasOf } from "./ownRequest.ts"
import { readCompactRequest, readCountRequest, readResponseRequest } from "./readRequest.ts"
import { type DecodeOptions, storedReferences } from "./requestItems.ts"
import { makeConnect } from "./socket/connect.ts"
import { Turn } from "./socket/Turn.ts"
import { emptyText, warmUpFrames } from "./socket/warmUp.ts"
import { asText, jsonSizeSliced } from "./store/jsonSize.ts"
import { type OpenResponse, ResponsesStore, type StoredResponse } from "./store/ResponsesStore.ts"

/** The owner of the names of responses by the ids of their items: those of servers name no response. */
const ownerOfItems = (owner: string): string => `items ${owner}`

/** Items of a response that can be referred to. */
const mostItems = 64

/** A violated `tool_choice` concerns the model's reply, not the request, so the stream reports it (spec "States and transitions"). */
const reportsViolation = (id: string) => (opening: Opening): Opening =>
  Effect.catchIf(
    opening,
    (error) => error.code === "tool_choice_violation",
    (error): Effect.Effect<CompletionOutput> =>
      Effect.succeed({ id, driver: "", events: Stream.fail(error), maker: undefined })
  )

const notFound = (id: string) =>
  gatewayError("not_found", `The response "${id.slice(0, 200)}" does not exist or has expired`)

export const ResponsesHandlers = groupRoutes(
  ResponsesGroup,
  Effect.gen(function*() {
    const responder = yield* makeResponder
    const { wideInput } = yield* CurrentServing
    const store = yield* ResponsesStore
    const clock = yield* Clock.Clock
    const connect = yield* makeConnect
    const { look } = yield* Entrance
    const { askedFor, byEndpoint, readSummary } = yield* makeCompactions

    const find = Effect.fnUntraced(function*(id: string) {
      const stored = yield* store.get((yield* CurrentCaller).owner, id)
      if (stored === undefined) return yield* notFound(id)
      return stored
    })

    const referenced = Effect.fnUntraced(function*(owner: string, request: ResponseRequest, turn?: Turn) {
      const found = new Map<string, StoredResponse>()
      const { items, responses } = yield* runCooperatively(storedReferences(request))
      for (const id of items) {
        const named = yield* store.get(ownerOfItems(owner), id)
        if (named !== undefined) responses.add(named.body)
      }
      for (const id of responses) {
        const stored = turn?.find(id) ?? (yield* store.get(owner, id))
        if (stored !== undefined) found.set(id, stored)
      }
      return found
    })

    const optionsOf = (
      { bodyVendorFields, sent }: ReadRequest<ResponseRequest>,
      { limits }: RunningRequest,
      model: Route,
      { headers }: HttpServerRequest.HttpServerRequest,
      stored: DecodeOptions["stored"]
    ): DecodeOptions => ({
      bodyVendorFields,
      wideInput: wideInput(),
      sent: responder.passesWhole(model, "responses") ? sent : undefined,
      betas: betasOf(headers["openai-beta"]),
      stored,
      limits,
      readSummary,
      isWarmUp: false,
      serverCompacts: false,
      compaction: undefined
    })

    return {
      countTokens: Effect.fnUntraced(function*({ endpoint, request }) {
        const sent = yield* readCountRequest(request)
        const current = yield* responder.currentRequest
        const model = yield* responder.findModel(current, sent.body.model)
        const { caller, stats } = current
        const stored = yield* referenced(caller.owner, sent.body)
        const { conversation, ignored, taken } = yield* Effect.fromResult(
          yield* startCooperatively(decodeResponse(sent.body, optionsOf(sent, current, model, request, stored)))
        )
        for (const path of ignored) noteIgnored(stats, path)
        if (taken > 0) yield* holdPrompt(taken)
        return respond(endpoint, {
          object: "response.input_tokens",
          input_tokens: yield* responder.countTokens(current, model, withRest(conversation, sent))
        })
      }),
      connect: ({ request }) => connect(request),
      create: Effect.fnUntraced(function*({ request }) {
        const turn = request.source instanceof Turn ? request.source : undefined
        const sent = yield* readResponseRequest(request)
        const { body } = sent
        const current = yield* responder.currentRequest
        const { caller, stats } = current
        const stream = stats.stream = body.stream === true
        const model = yield* responder.findModel(current, body.model)
        const known = yield* referenced(caller.owner, body, turn)
        const compactor = sent.sent === undefined ? undefined : responder.compactor(current, model)
        const options = {
          ...optionsOf(sent, current, model, request, known),
          serverCompacts: compactor !== undefined,
          isWarmUp: turn?.generates === false
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
        const itemsSize = keep || turn !== undefined ? yield* startCooperatively(jsonSizeSliced(items)) : 0
        const finish = (body: string, id: string, heldBy?: Maker) => {
          if (turn !== undefined) turn.response = { id, body, items, size: itemsSize + 2 * body.length, heldBy }
        }
        // A caller may use any number of direct tokens, so they share one part of the store.
        const share = caller._tag === "Direct" ? "direct" : caller.owner

        /** Keeps which response has the items of a server. */
        const keepItems = (response: string, items: ReadonlyArray<string>) =>
          Effect.forEach(
            items.slice(0, mostItems),
            (id) => store.put(ownerOfItems(caller.owner), { id, body: response, items: [], itemsSize: 0 }, share),
            { discard: true }
          )

        const decodedWith = Effect.fnUntraced(function*(differing: Partial<DecodeOptions>) {
          const decoded = yield* startCooperatively(decodeResponse(body, { ...options, ...differing }))
          return withRest((yield* Effect.fromResult(decoded)).conversation, sent)
        })
        const compaction = asked === undefined
          ? undefined
          : askedFor(
            asked,
            { conversation, model: body.model, compactor },
            compactor === undefined ? Effect.succeed(conversation) : decodedWith({ serverCompacts: false }),
            (compaction) => decodedWith({ sent: undefined, compaction })
          )

        const whole = ({ events, maker }: CompletedReply) => {
          let final = ""
          let finalId = id
          let served: ReadonlyArray<string> = []
          let heldBy: Maker | undefined
          const finalized = (text: string, id: string, items: ReadonlyArray<string> = [], isHeld = false) => {
            final = text
            finalId = id
            served = items
            heldBy = isHeld ? maker : undefined
          }
          const { frames } = responseFrames(info, { now, finalized, compaction: compaction?.seal, begun: undefined })
          for (const event of events) frames.push(event, [])
          const response = jsonText(final)
          if (!keep) return Effect.succeed(response)
          const put = store.put(caller.owner, { id: finalId, body: final, items, itemsSize, heldBy }, share)
          return Effect.as(served.length === 0 ? put : Effect.andThen(put, keepItems(finalId, served)), response)
        }

        if (turn?.generates === false) {
          yield* look(current)
          const body = emptyText(info, Math.floor(now() / 1000))
          finish(body, id)
          if (keep) yield* store.put(caller.owner, { id, body, items, itemsSize }, share)
          return HttpServerResponse.text(warmUpFrames(info, body), { contentType: "text/event-stream" })
        }

        let stored: OpenResponse | undefined
        let maker: Maker | undefined
        let indexing: Effect.Effect<void> | undefined
        const renderer = responseFrames(info, {
          now,
          compaction: compaction?.seal,
          begun: (body, id) => {
            if (keep) stored = store.openUnsafe(caller.owner, { id, body, items, itemsSize }, share)
          },
          finalized: (text, id, items = [], isHeld = false) => {
            const heldBy = isHeld ? maker : undefined
            finish(text, id, heldBy)
            stored?.finalizeUnsafe(text, heldBy)
            if (keep && items.length > 0) indexing = keepItems(id, items)
          }
        })
        const pending = () => {
          const written = stored?.written()
          const index = indexing
          indexing = undefined
          return index === undefined || written === undefined ? index ?? written : Effect.andThen(written, index)
        }
        const start = (output?: CompletionOutput) => {
          maker = output?.maker
          return { ...renderer, pending }
        }
        if (stream) {
          // When the client disconnects before the response is final, the response is stored as cancelled.
          const cancel = Effect.suspend(() => {
            renderer.cancel()
            return pending() ?? Effect.void
          })
          yield* Scope.addFinalizer(yield* Effect.scope, cancel)
        }
        return yield* responder.respond(
          current,
          model,
          conversation,
          {
            stream,
            whole,
            frames: start,
            // Before the first event, a message is answered by an error.
            failure: turn === undefined ? (error) => start().failure(error) : undefined,
            keepsText: true
          },
          reportsViolation(id),
          compaction
        )
      }),
      compact: Effect.fnUntraced(function*({ endpoint, request }) {
        const sent = yield* readCompactRequest(request)
        const body = continuing(sent.body)
        if (body.stream === true) return yield* invalidRequest("stream: a compaction is sent whole", "stream")
        const current = yield* responder.currentRequest
        const { caller, created, stats } = current
        const model = yield* responder.findModel(current, body.model)
        const known = yield* referenced(caller.owner, body)
        const decoded = yield* Effect.fromResult(
          yield* startCooperatively(decodeResponse(body, optionsOf(sent, current, model, request, known)))
        )
        const { ignored, items, taken } = decoded
        const conversation = withRest(decoded.conversation, sent)
        for (const path of ignored) noteIgnored(stats, path)
        if (taken > 0) yield* holdPrompt(taken)
        const compactor = sent.sent === undefined ? undefined : responder.compactor(current, model)
        return yield* responder.together(current, model, conversation, (replies) =>
          byEndpoint(
            replies,
            { conversation, model: body.model, compactor },
            (described) =>
              jsonText(
                JSON.stringify(Object.hasOwn(described, "model") ? { ...described, model: body.model } : described)
              ),
            (seal, { events }) =>
              Effect.map(
                runCooperatively(keptTexts(items as ReadonlyArray<Item>)),
                (texts) =>
                  respond(endpoint, compactedResponse(crypto.randomUUID(), created, texts, seal, replyOf(events).usage))
              )
          ))
      }),
      retrieve: Effect.fnUntraced(function*({ params, query }) {
        if (query.stream === "true") {
          return yield* invalidRequest("stream: a stored response is not streamed again", "stream")
        }
        const stored = yield* find(params.id)
        return jsonText(stored.body)
      }),
      remove: Effect.fnUntraced(function*({ endpoint, params }) {
        const caller = yield* CurrentCaller
        const { heldBy } = yield* find(params.id)
        if (!(yield* store.remove(caller.owner, params.id))) return yield* notFound(params.id)
        if (heldBy !== undefined) yield* responder.forget(caller, heldBy, params.id)
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
  Layer.provide([
    Layer.effect(OpenAiMiddleware, businessMiddleware(OpenAiMiddleware.facts)),
    Layer.effect(UncountedMiddleware, businessMiddleware(UncountedMiddleware.facts))
  ])
)
