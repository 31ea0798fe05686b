/**
 * Serves raw samples.
 */
import * as Effect from "effect/Effect"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { answerer } from "../../contracts/drivers.ts"
import { type GatewayError, gatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import { given } from "../../domain/givenText.ts"
import { nativeModels } from "../../domain/models.ts"
import { resolveRoute } from "../../domain/routes.ts"
import { jsonText } from "../../http/reply.ts"
import { makeLarge } from "../../http/WorkLimit.ts"
import { bytesOfRounds, type CaptureChain } from "../../recordings/CapturedRound.ts"
import { namedModel, previews } from "../../recordings/capturePreview.ts"
import { Captures } from "../../recordings/Captures.ts"
import { cleanSampleId, SampleFolder, type SavedSample } from "../../recordings/SampleFolder.ts"
import { adminBodyOf } from "../adminBody.ts"
import { logChange } from "../changes.ts"
import { clamp } from "../contract.ts"
import { adminHandlers } from "../handlers.ts"
import { itemsOf, makeNodeItems, type NodeItems, type NodeList, readItems } from "../nodeItems.ts"
import { noQuestion } from "../nodes/Query.ts"
import { chatRequest, defaultModel, SampleReplay, SelfClient } from "../SelfClient.ts"
import { AdminSamplesGroup, SampleQueryItem, type SaveSampleReply, type SaveSampleRequest } from "./Api.ts"

const readCapture = adminBodyOf(AdminSamplesGroup.endpoints.capture)
const readSave = adminBodyOf(AdminSamplesGroup.endpoints.save)
const readReplay = adminBodyOf(AdminSamplesGroup.endpoints.replay)

const unknownSample = gatewayError("not_found", "There is no sample of this name")

const noCapture = gatewayError("not_found", "No capture fits; it may have been pushed out by later ones")

/** The question to each node for its chains: their number at most, and a text in them. */
const chainsKind = {
  name: "chains",
  question: Schema.fromJsonString(Schema.Tuple([Schema.Int, Schema.String])),
  head: noQuestion,
  items: itemsOf(SampleQueryItem)
}

/**
 * The question to save a chain: the name that is asked for, and what selects it. The answer is the reply as JSON, which is passed on as it
 * is.
 */
const saveQuery = {
  name: "save chain",
  question: Schema.fromJsonString(
    Schema.Tuple([Schema.NullOr(Schema.String), Schema.Literals(["chain", "capture"]), Schema.String])
  ),
  answer: Schema.String
}

/** Bounds the chains of a query; the captures keep no more rounds. */
const mostChains = 50
const defaultLimit = 20

const idOf = (text: string | null | undefined) =>
  given(text) === undefined ? Effect.undefined : Effect.fromResult(cleanSampleId(text!))

/** A path for a header, which carries only visible ASCII (RFC 9110). */
const headerPath = (text: string): string => /^[\x20-\x7e]*$/.test(text) ? text : encodeURI(text)

const sampleHeaders = ({ dir, id, metaPath, upstreamPath }: SavedSample) => ({
  "x-gateway-sample-id": id,
  "x-gateway-sample-dir": headerPath(dir),
  "x-gateway-sample-meta": headerPath(metaPath),
  "x-gateway-sample-upstream": headerPath(upstreamPath)
})

/** The parts of a chat reply that are passed on. */
interface ChatReply {
  readonly status: number
  readonly contentType: string
  readonly headers: Record<string, string>
  readonly body: Uint8Array
}

/**
 * The response if nothing was captured: the upstream was not reached, or captures are off. It includes an error of the chat
 * request. A 401 becomes 400, since a 401 of the admin API is about the operator's credential.
 */
const nothingRecorded = ({ body, status }: ChatReply) =>
  HttpServerResponse.jsonUnsafe(
    {
      detail: "no upstream capture was recorded",
      ...(status < 400 ? {} : { response: new TextDecoder().decode(body) })
    },
    { status: status < 400 ? 409 : status === 401 ? 400 : status }
  )

const itemOf = (chain: CaptureChain, { named, node }: NodeItems): typeof SampleQueryItem.Type => {
  const { request, response } = previews(chain)
  const id = node()
  return {
    ...(id === undefined ? {} : { node: id }),
    chain_key: named(chain[0].chainKey),
    capture_ids: chain.map((round) => named(round.id)),
    round_count: chain.length,
    initial_label: chain[0].label,
    created_at: chain[0].createdAt,
    status: chain.at(-1)!.status,
    model: namedModel(chain[0].requestBody),
    request_preview: request,
    response_preview: response
  }
}

export const AdminSamplesHandlers = adminHandlers(AdminSamplesGroup, function*() {
  const captures = yield* Captures
  const folder = yield* SampleFolder
  const self = yield* SelfClient
  const replay = yield* SampleReplay
  const store = yield* ConfigStore

  /** The native model with the same flags; for an unknown model the one with reasoning and search. */
  const nativeModel = (named: string | undefined): string => {
    const model = named === undefined ? undefined : resolveRoute(store.now().route_table, "usual", named)
    const { reasoning, search } = model ?? { reasoning: true, search: true }
    return nativeModels.find((native) => native.reasoning === reasoning && native.search === search)?.id ??
      defaultModel
  }

  const chat = Effect.fnUntraced(function*(request: HttpClientRequest.HttpClientRequest) {
    const response = yield* self.execute(request)
    const reply: ChatReply = {
      status: response.status,
      contentType: response.headers["content-type"] ?? "application/json",
      headers: response.headers["x-gateway-upstream"] === answerer ? { "x-gateway-upstream": answerer } : {},
      body: new Uint8Array(yield* response.arrayBuffer)
    }
    return reply
  }, Effect.orDie)

  const nodes = yield* makeNodeItems

  /** Searches the chains of all nodes. */
  const search = nodes.merged(
    chainsKind,
    Effect.fnUntraced(
      function*(
        [limit, text]: typeof chainsKind.question.Type
      ): Effect.fn.Return<NodeList<"", typeof SampleQueryItem.Type>> {
        const chains = yield* captures.query(text, limit)
        const items = chains.map((chain, i) => ({
          at: chain[0].createdAt,
          place: -i,
          value: itemOf(chain, nodes)
        }))
        return { head: "", items }
      },
      // The search reads the bodies of all rounds.
      (found) => Effect.flatMap(captures.summaries, (rounds) => makeLarge(bytesOfRounds(rounds), found))
    )
  )

  /** Saves a chain of this node as a sample here. */
  const saveOwn = Effect.fnUntraced(function*(
    [name, kind, of]: typeof saveQuery.question.Type
  ): Effect.fn.Return<string, GatewayError> {
    const id = yield* idOf(name)
    const chain = kind === "chain" ? yield* captures.chain(of) : yield* captures.chainOf(of)
    if (chain === undefined) return yield* noCapture
    const saved = yield* folder.save({ id, chain, request: undefined })
    return JSON.stringify(
      {
        success: true,
        sample_id: saved.id,
        dir: saved.dir,
        sample_dir: saved.dir,
        meta_path: saved.metaPath,
        upstream_path: saved.upstreamPath,
        chain_key: nodes.named(chain[0].chainKey),
        capture_ids: chain.map((round) => nodes.named(round.id)),
        round_count: chain.length
      } satisfies typeof SaveSampleReply.Type
    )
  })
  const saveChain = nodes.one(saveQuery, saveOwn)

  /** The selector of a request: a chain, or one of its rounds, of any node. */
  const select = Effect.fnUntraced(function*(
    request: typeof SaveSampleRequest.Type
  ): Effect.fn.Return<readonly ["chain" | "capture", string], GatewayError, Scope.Scope> {
    const chainKey = given(request.chain_key)
    const captureId = given(request.capture_id)
    const query = given(request.query)
    if ([chainKey, captureId, query].filter((selector) => selector !== undefined).length !== 1) {
      return yield* invalidRequest("Give exactly one of chain_key, capture_id and query")
    }
    if (chainKey !== undefined) return ["chain", chainKey]
    if (captureId !== undefined) return ["capture", captureId]
    const { values: [first] } = readItems((yield* search([1, query!])).items)
    if (first === undefined) return yield* noCapture
    return ["chain", first.chain_key]
  })

  return {
    list: () =>
      Effect.map(folder.list, (samples) => ({
        items: samples.map(({ asked, bytes, createdAt, id, model = asked, rounds, status }) => ({
          sample_id: id,
          created_at: createdAt,
          model,
          status,
          round_count: rounds,
          bytes
        }))
      })),
    replay: Effect.fnUntraced(function*({ request }) {
      const { sample_id, stream, style } = yield* readReplay(request)
      const sample = yield* folder.describe(sample_id)
      if (sample === undefined) return yield* unknownSample
      return yield* replay({ id: sample_id, model: nativeModel(sample.model), style, stream: stream === true })
    }),
    remove: Effect.fnUntraced(function*({ params }) {
      if (!(yield* folder.remove(params.sample_id))) return yield* unknownSample
      yield* logChange("a raw sample was deleted")
      return { success: true }
    }),
    capture: Effect.fnUntraced(function*({ request }) {
      const body = yield* readCapture(request)
      const id = yield* idOf(body.sample_id)
      const { body: asked, request: asking } = yield* Effect.fromResult(
        chatRequest(body, (yield* store.current).keys, body.stream ?? true)
      )
      const requestId = `sample_${crypto.randomUUID()}`
      const recorded = yield* captures.follow(requestId)
      const reply = yield* chat(HttpClientRequest.setHeader(asking, "x-request-id", requestId))
      const chain = yield* recorded
      if (chain === undefined) return nothingRecorded(reply)
      const saved = yield* folder.save({ id, chain, request: asked })
      yield* logChange("a raw sample was captured")
      return HttpServerResponse.uint8Array(reply.body, {
        status: reply.status,
        contentType: reply.contentType,
        headers: { ...reply.headers, ...sampleHeaders(saved) }
      })
    }),
    query: Effect.fnUntraced(function*({ query: { limit: asked, q = "" } }) {
      const limit = clamp(asked, defaultLimit, mostChains)
      const { items: found, missing } = yield* search([limit, q])
      const { unread, values: items } = readItems(found.slice(0, limit))
      return { query: q, limit, count: items.length, items, ...nodes.missingNodes([...missing, ...unread]) }
    }),
    save: Effect.fnUntraced(function*({ request }) {
      const body = yield* readSave(request)
      // A faulty name is refused before the chain is looked up.
      yield* idOf(body.sample_id)
      const [kind, selected] = yield* select(body)
      const text = yield* saveChain(selected, (own) => [body.sample_id ?? null, kind, own])
      if (text === undefined) return yield* noCapture
      yield* logChange("a raw sample was saved")
      return jsonText(text)
    })
  }
})
