/**
 * Handlers of the relayed endpoints.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { Accounts } from "../../accounts/Accounts.ts"
import { admitRequest, keyOf } from "../../completion/admission.ts"
import { notRelayed, type OpenRelayed, relay, type RelayedSource } from "../../completion/relay.ts"
import { startCooperatively } from "../../config/clock/cooperative.ts"
import { Deadlines } from "../../config/clock/Deadlines.ts"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { CurrentLimits } from "../../config/limits.ts"
import { parseJson } from "../../contracts/shared/json.ts"
import { type GatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import { isRecord } from "../../domain/json.ts"
import type { Route } from "../../domain/routes.ts"
import { type Cooperative, pieceChars, Slice } from "../../domain/stream/cooperative.ts"
import { modelPlace, modelTwice } from "../../domain/stream/FormScan.ts"
import { TopLevel } from "../../domain/stream/TopLevel.ts"
import { modelFault } from "../../http/bodyLimits.ts"
import { businessMiddleware } from "../../http/endpointMiddleware.ts"
import { groupRoutes, type HandlersOf } from "../../http/groupRoutes.ts"
import { jsonRequest } from "../../http/jsonBody.ts"
import { isForm, noForm, type ReceivedForm, receiveForm } from "../../http/receiveForm.ts"
import type { CurrentRequest } from "../../http/RequestContext.ts"
import { CurrentServing } from "../../http/Serving.ts"
import { streamReply } from "../../http/streamReply.ts"
import { Captures } from "../../recordings/Captures.ts"
import { RequestBudget } from "../../upstream/budget.ts"
import { Upstreams } from "../../upstream/Upstreams.ts"
import { KeyLimits } from "../../usage/KeyLimits.ts"
import { inputTokens } from "../shared/embeddings/inputs.ts"
import { OpenAiMiddleware } from "../shared/middleware.ts"
import { makeResponder } from "../shared/responder.ts"
import { RelayedBody, RelayedGroup } from "./Api.ts"
import { relayedBounds } from "./bounds.ts"
import { type RelayedEndpoint, relayedEndpoints } from "./endpoints.ts"
import { RelayRenderer } from "./RelayRenderer.ts"

/** A request body with the model that it asks for. */
interface ReadRequest {
  readonly isStream: boolean
  readonly model: string
  readonly source: RelayedSource
  /** Text of which the tokens are estimated. */
  readonly text: string
  /** The source, if it is a form. */
  readonly form: ReceivedForm | undefined
}

const readBody = jsonRequest(RelayedBody, { keepsText: true })

/** The text around the model's name; `undefined` if it names the model more than once. */
function* piecesOf(text: string): Cooperative<ReadonlyArray<string | typeof modelPlace> | undefined> {
  const slice = new Slice()
  const out: Array<string | typeof modelPlace> = []
  const scan = new TopLevel(modelPlace)
  for (let from = 0; from < text.length; from += pieceChars) {
    scan.push(text.slice(from, from + pieceChars), out)
    if (slice.add(1, pieceChars)) yield slice.end()
  }
  return scan.models > 1 ? undefined : out
}

const readJson = Effect.fnUntraced(function*(
  request: HttpServerRequest.HttpServerRequest,
  endpoint: RelayedEndpoint
): Effect.fn.Return<ReadRequest, GatewayError, CurrentRequest | Scope.Scope> {
  const { body, text } = yield* readBody(request)
  const model = body.model ?? endpoint.model
  if (model === undefined) return yield* invalidRequest("model: is required", "model")
  const long = modelFault(model, yield* currentLimits)
  if (long !== undefined) return yield* long
  const pieces = yield* startCooperatively(piecesOf(text))
  // Servers take the first one or the last one.
  if (pieces === undefined) return yield* invalidRequest(modelTwice, "model")
  const rest = text.slice(text.indexOf("{") + 1)
  const named = pieces.includes(modelPlace)
    ? pieces
    : ["{\"model\":", modelPlace, /^\s*\}/.test(rest) ? rest : `,${rest}`]
  const source: RelayedSource = {
    body: (name) => {
      const content = named.map((piece) => piece === modelPlace ? JSON.stringify(name) : piece).join("")
      return { content, contentType: "application/json", length: undefined, recorded: content }
    },
    isSpent: false,
    sent: 0,
    release() {}
  }
  return { isStream: body.stream === true, model, source, text: endpoint.isText ? text : "", form: undefined }
})

/** The tokens of output that a request reserves; `undefined` without bounds. */
const mostOf = (bounds: ReturnType<typeof relayedBounds> | undefined): number | undefined =>
  Array.isArray(bounds) ? bounds[0]?.most.completionTokens : undefined

/** The characters of a request's `input`. */
const charactersOf = (text: string): number => {
  const body = parseJson(text, Infinity)
  const input = isRecord(body) ? body["input"] : undefined
  let characters = 0
  if (typeof input === "string") { for (const _ of input) characters++ }
  return characters
}

const currentLimits = Effect.withFiberSucceed((fiber) => fiber.getRef(CurrentLimits)())

const read = Effect.fnUntraced(function*(
  request: HttpServerRequest.HttpServerRequest,
  endpoint: RelayedEndpoint
): Effect.fn.Return<ReadRequest, GatewayError, CurrentRequest | Scope.Scope> {
  const contentType = request.headers["content-type"]
  if (!isForm(contentType)) return yield* readJson(request, endpoint)
  if (!endpoint.hasFiles) return yield* noForm
  const form = yield* receiveForm(request, contentType, yield* currentLimits)
  return { isStream: false, model: form.model, source: form, text: "", form }
})

export const RelayedHandlers = groupRoutes(
  RelayedGroup,
  Effect.gen(function*() {
    const responder = yield* makeResponder
    const keyLimits = yield* KeyLimits
    const accounts = yield* Accounts
    const captures = yield* Captures
    const deadlines = yield* Deadlines
    const store = yield* ConfigStore
    const upstreams = yield* Upstreams
    const { patience } = yield* CurrentServing
    const services = { accounts, captures, deadlines }

    const handle = (endpoint: RelayedEndpoint) =>
      Effect.fnUntraced(function*({ request: source }: { readonly request: HttpServerRequest.HttpServerRequest }) {
        const current = yield* responder.currentRequest
        const { caller, request, stats } = current
        const [only, ...others] = yield* upstreams.all
        // The body of a request that nothing can relay is not read.
        if (others.length === 0 && only !== undefined && only[1].capabilities.relay === undefined) {
          return yield* notRelayed(only[1].name, endpoint.path, only[0])
        }
        const { form, isStream, model: requested, source: body, text } = yield* read(source, endpoint)
        stats.stream = isStream
        const model = yield* responder.findModel(current, requested, endpoint.takesFamilies ? "relayedText" : "relayed")
        stats.progress = "begun"
        const estimate = yield* startCooperatively(inputTokens([text]))
        return yield* Effect.withFiber((fiber) => {
          const clock = fiber.getRef(Clock.Clock)
          const bounds = (model: Route) => relayedBounds(endpoint, text, estimate, request.outputs, model)
          let isStrict = false
          const opening = relay(services, {
            caller,
            config: store.now(),
            model,
            request,
            path: endpoint.path,
            accept: source.headers["accept"] ?? "*/*",
            source: body,
            promptTokens: estimate,
            bounds,
            makeBudget: () => new RequestBudget(current.limits, clock, request.held)
          })
          const render = (output: OpenRelayed) => {
            const renderer = new RelayRenderer(output, {
              stats,
              requested,
              estimate,
              hasChoices: endpoint.hasChoices,
              hasPictures: endpoint.counts === "pictures",
              characters: endpoint.counts === "characters" ? charactersOf(text) : 0,
              most: mostOf(output.isBounded || isStrict ? bounds(model) : undefined),
              limits: current.limits
            })
            stats.soFar = renderer
            return renderer
          }
          return admitRequest(
            keyLimits,
            { caller, model, request, choosing: form?.choosing },
            () => estimate,
            ({ strict }) => {
              isStrict = strict !== undefined
              if (form !== undefined) form.refuse = (names) => keyLimits.refuseChoosing(keyOf(caller), model, names)
              const started = Effect.map(opening, (reply) => ({ ...reply, events: reply.bytes }))
              return streamReply(started, render, undefined, deadlines, patience())
            },
            { bounds, takesFallback: false }
          )
        })
      })

    return {
      completions: handle(relayedEndpoints.completions),
      rerank: handle(relayedEndpoints.rerank),
      score: handle(relayedEndpoints.score),
      moderations: handle(relayedEndpoints.moderations),
      images: handle(relayedEndpoints.images),
      edits: handle(relayedEndpoints.edits),
      speech: handle(relayedEndpoints.speech),
      transcriptions: handle(relayedEndpoints.transcriptions),
      translations: handle(relayedEndpoints.translations)
    } satisfies HandlersOf<typeof RelayedGroup>
  })
).pipe(Layer.provide(Layer.effect(OpenAiMiddleware, businessMiddleware(OpenAiMiddleware.facts))))
