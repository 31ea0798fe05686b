/**
 * The edge of a group of endpoints: who calls, the request's record, and every failure as a reply in the family's shape.
 *
 * Errors become replies here and not through the endpoints' error schemas, because a reply also needs headers
 * (`Retry-After`, `x-should-retry`) and a defect needs a shape too. The schemas document the same bodies.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiError from "effect/http-api/HttpApiError"
import type * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as HttpTraceContext from "effect/http/HttpTraceContext"
import * as Option from "effect/Option"
import * as Tracer from "effect/Tracer"
import type { unhandled } from "effect/Types"
import { Callers } from "../accounts/Callers.ts"
import { keyOf } from "../completion/admission.ts"
import { makeRequestStats, type RequestStats } from "../completion/RequestStats.ts"
import { UsageRecorder } from "../completion/UsageRecorder.ts"
import { GatewayError, gatewayError } from "../domain/GatewayError.ts"
import { monotonicMillis } from "../domain/monotonicMillis.ts"
import { Requests } from "../requests/Requests.ts"
import { rateLimitHeaders } from "../usage/rateLimits.ts"
import { credentialOf } from "./credential.ts"
import type { ErrorShape } from "./errorShapes.ts"
import { schemaFault } from "./jsonBody.ts"
import { headOf, replyHeaders } from "./recordedHead.ts"
import { CurrentCaller, CurrentRequest } from "./Request.ts"

const missing = gatewayError(
  "authentication_failed",
  "No API key was sent; send Authorization: Bearer <key> or x-api-key: <key>"
)

const isGatewayError = (error: unknown): error is GatewayError => error instanceof GatewayError

/** An error as a whole reply. */
export const errorResponse = (
  shape: ErrorShape,
  error: GatewayError,
  requestId?: string
): HttpServerResponse.HttpServerResponse => {
  const headers: Record<string, string> = {}
  if (error.retryAfter !== undefined) headers["retry-after"] = String(Math.max(1, Math.ceil(error.retryAfter)))
  if (!error.shouldRetry) headers["x-should-retry"] = "false"
  // The rest of the body is not awaited.
  if (error.code === "request_timeout") headers["connection"] = "close"
  return HttpServerResponse.text(shape(error, requestId), {
    status: error.status,
    contentType: "application/json",
    headers
  })
}

/** What the caller is told of a cause; `undefined` when the request was only interrupted. */
export const toGatewayError = (cause: Cause.Cause<unknown>): Effect.Effect<GatewayError | undefined> => {
  for (const reason of cause.reasons) {
    const fault: unknown = reason._tag === "Fail" ? reason.error : reason._tag === "Die" ? reason.defect : undefined
    if (isGatewayError(fault)) return Effect.succeed(fault)
    if (HttpApiError.HttpApiSchemaError.is(fault) && fault.kind !== "Body" && fault.kind !== "ResponseHeaders") {
      return Effect.succeed(schemaFault(fault.cause.issue))
    }
  }
  if (Cause.hasInterruptsOnly(cause)) return Effect.undefined
  return Effect.as(
    Effect.logError("A request failed by a defect of the gateway", cause),
    gatewayError("internal_error", "An internal error occurred; the request id names it in the gateway's log")
  )
}

const rendered = (shape: ErrorShape, stats: RequestStats) => (cause: Cause.Cause<unknown>) =>
  Effect.flatMap(toGatewayError(cause), (error) => {
    if (error === undefined) return Effect.interrupt
    stats.error = error.code
    stats.cause = error.cause
    return Effect.succeed(errorResponse(shape, error, stats.id))
  })

/** Watches requests: told of each when it is over, its body included. Must not fail; the default does nothing. */
export interface RequestWatch {
  readonly ended: (stats: RequestStats, span: Tracer.Span | undefined) => Effect.Effect<void>
  /** Whether requests are spans of a trace. */
  readonly traced: boolean
}

export const CurrentRequestWatch = Context.Reference<RequestWatch>("model-gateway/http/RequestWatch", {
  defaultValue: (): RequestWatch => ({ ended: () => Effect.void, traced: false })
})

/** What an edge is told of the endpoint that it stands before. */
export interface EdgeOptions {
  readonly group: HttpApiGroup.Top
  readonly endpoint: HttpApiEndpoint.Top
}

/** The handler behind an edge. */
export type Handled<R> = Effect.Effect<HttpServerResponse.HttpServerResponse, unhandled, R>

const begin = Effect.fnUntraced(function*(
  { endpoint, group }: EdgeOptions,
  style = group.identifier,
  recorder?: UsageRecorder["Service"]
) {
  const request = yield* HttpServerRequest.HttpServerRequest
  const stats = makeRequestStats(
    request.headers["x-request-id"] ?? crypto.randomUUID(),
    monotonicMillis(yield* Clock.Clock)
  )
  stats.style = style
  const watch = yield* CurrentRequestWatch
  const outer = Option.getOrUndefined(HttpTraceContext.fromHeaders(request.headers))
  const span = watch.traced ? yield* requestSpan(outer, endpoint, stats) : undefined
  yield* Effect.addFinalizer(() => {
    recorder?.ended(stats)
    stats.record?.ended()
    return watch.ended(stats, span)
  })
  return { request, stats, span: span ?? outer }
})

/** The request's span, below the caller's own where it sent one. Neither queries nor headers are in it. */
const requestSpan = (
  outer: Tracer.ExternalSpan | undefined,
  endpoint: HttpApiEndpoint.Top,
  stats: RequestStats
) =>
  Effect.makeSpanScoped(`${endpoint.method} ${endpoint.path}`, {
    kind: "server",
    ...(outer === undefined ? {} : { parent: outer }),
    attributes: {
      "http.request.method": endpoint.method,
      "http.route": endpoint.path,
      "gateway.request_id": stats.id,
      "gateway.style": stats.style
    }
  })

const within = <A, E, R>(effect: Effect.Effect<A, E, R>, span: Tracer.AnySpan | undefined): Effect.Effect<A, E, R> =>
  span === undefined ? effect : Effect.provideService(effect, Tracer.ParentSpan, span)

/** Says that a reply comes from the upstream inside the gateway. */
const upstreamIsEmbedded = { "x-gateway-upstream": "embedded" }

const timing = (stats: RequestStats, now: number): string => {
  const waited = { queued: stats.queued, upstream: stats.upstream }
  // Headers may leave before there is a reply.
  if (stats.waiting !== undefined) waited[stats.waiting.for] += now - stats.waiting.since
  const gateway = Math.max(0, now - stats.startedAt - waited.queued - waited.upstream)
  const [queued, upstream, own] = [waited.queued, waited.upstream, gateway].map(Math.round)
  return `queue;dur=${queued}, upstream;dur=${upstream}, gateway;dur=${own}`
}

/** Notes how the request was answered and adds the headers that say so. */
const answered = (idHeader: string | undefined, stats: RequestStats) =>
  Effect.flatMap((response: HttpServerResponse.HttpServerResponse) => {
    stats.status = response.status
    const limited = stats.rateLimits === undefined
      ? response
      : HttpServerResponse.setHeaders(response, rateLimitHeaders(stats.rateLimits))
    const named = idHeader === undefined ? limited : HttpServerResponse.setHeader(limited, idHeader, stats.id)
    if (stats.attempts === 0) return Effect.succeed(recorded(named, stats))
    return Effect.map(Clock.Clock, (clock) =>
      recorded(
        HttpServerResponse.setHeaders(named, {
          "server-timing": timing(stats, monotonicMillis(clock)),
          // Errors of the upstream inside the gateway are its own too.
          ...(stats.driver === "embedded" ? upstreamIsEmbedded : {})
        }),
        stats
      ))
  })

/** Notes what the caller is answered, where that is recorded. A stream's pieces are noted as they go. */
const recorded = (
  response: HttpServerResponse.HttpServerResponse,
  { id, record }: RequestStats
): HttpServerResponse.HttpServerResponse => {
  const { body, status } = response
  record?.answered(status, replyHeaders(response, id), body._tag === "Uint8Array" ? body.body : undefined)
  return response
}

/**
 * The edge of endpoints that need no credential. `idHeader`: where the family's SDK looks for the request's id; `style`: what
 * the record calls such requests where it is not their group.
 */
export const publicEdge =
  (shape: ErrorShape, idHeader?: string, style?: string) =>
  <E, R>(httpEffect: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>, options: EdgeOptions) =>
    Effect.flatMap(begin(options, style), ({ span, stats }) =>
      within(httpEffect, span).pipe(
        Effect.provideService(CurrentRequest, stats),
        Effect.catchCause(rendered(shape, stats)),
        answered(idHeader, stats)
      ))

/** The edge of business endpoints: the credential is checked before the body is read. `idHeader` as in `publicEdge`. */
export const businessEdge = (shape: ErrorShape, idHeader?: string) =>
  Effect.map(
    // Whoever has no use for records of requests leaves them out.
    Effect.all([Callers, UsageRecorder, Effect.serviceOption(Requests)]),
    ([callers, recorder, requests]) => (httpEffect: Handled<CurrentCaller | CurrentRequest>, options: EdgeOptions) =>
      Effect.flatMap(begin(options, undefined, recorder), ({ request, span, stats }) => {
        const token = credentialOf(request)
        const target = request.headers["x-gateway-target-account"]?.trim()
        const caller = token === undefined
          ? Effect.fail(missing)
          : callers.identify(token, target === "" ? undefined : target)
        return caller.pipe(
          Effect.flatMap((known) => {
            const key = keyOf(known)
            stats.key = key
            if (requests._tag === "Some" && options.endpoint.method === "POST" && token !== undefined) {
              stats.record = requests.value.begin({ facts: stats, key, head: () => headOf(request), secret: token })
            }
            return Effect.provideService(within(httpEffect, span), CurrentCaller, known)
          }),
          Effect.provideService(CurrentRequest, stats),
          Effect.catchCause(rendered(shape, stats)),
          answered(idHeader, stats)
        )
      })
  )
