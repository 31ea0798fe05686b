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
import * as Exit from "effect/Exit"
import type * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiError from "effect/http-api/HttpApiError"
import type * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as HttpTraceContext from "effect/http/HttpTraceContext"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as Tracer from "effect/Tracer"
import type { unhandled } from "effect/Types"
import { Callers } from "../accounts/Callers.ts"
import { keyOf } from "../completion/admission.ts"
import { makeRequestStats, type RequestStats } from "../completion/RequestStats.ts"
import { CurrentRequestWatch, type RequestWatch } from "../completion/RequestWatch.ts"
import { UsageRecorder } from "../completion/UsageRecorder.ts"
import { GatewayError, gatewayError } from "../domain/GatewayError.ts"
import { monotonicMillis } from "../domain/time.ts"
import { Requests } from "../recordings/requests/Requests.ts"
import { rateLimitHeaders } from "../usage/rateLimits.ts"
import { addressOf } from "./addressOf.ts"
import { credentialOf } from "./credential.ts"
import type { EdgeFacts } from "./edgeFacts.ts"
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
  return HttpServerResponse.text(shape.text(error, requestId), {
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

/** What an edge is told of the endpoint that it stands before. */
export interface EdgeOptions {
  readonly group: HttpApiGroup.Top
  readonly endpoint: HttpApiEndpoint.Top
}

/** The handler behind an edge. */
export type Handled<R> = Effect.Effect<HttpServerResponse.HttpServerResponse, unhandled, R>

/** The request's span, below the caller's own where it sent one; it ends with the record. Neither queries nor headers are in it. */
const requestSpan = (
  outer: Tracer.ExternalSpan | undefined,
  endpoint: HttpApiEndpoint.Top,
  stats: RequestStats
) =>
  Effect.makeSpan(`${endpoint.method} ${endpoint.path}`, {
    kind: "server",
    ...(outer === undefined ? {} : { parent: outer }),
    attributes: {
      "http.request.method": endpoint.method,
      "http.route": endpoint.path,
      "gateway.request_id": stats.id,
      "gateway.style": stats.style
    }
  })

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
const answered = (
  response: HttpServerResponse.HttpServerResponse,
  idHeader: string | undefined,
  stats: RequestStats,
  now: number
): HttpServerResponse.HttpServerResponse => {
  stats.status = response.status
  const headers: Record<string, string> = stats.rateLimits === undefined
    ? {}
    : { ...rateLimitHeaders(stats.rateLimits) }
  if (idHeader !== undefined) headers[idHeader] = stats.id
  if (stats.attempts > 0) {
    headers["server-timing"] = timing(stats, now)
    // Errors of the upstream inside the gateway are its own too.
    if (stats.driver === "embedded") Object.assign(headers, upstreamIsEmbedded)
  }
  return recorded(HttpServerResponse.setHeaders(response, headers), stats)
}

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
 * Hands on the record of a request that is over, once. Records are kept for operators to look at; what hands them on holds
 * the whole request and its reply, and is not.
 */
export const endRecord = (stats: RequestStats): Effect.Effect<void> => {
  const { ended } = stats
  stats.ended = undefined
  return ended?.() ?? Effect.void
}

/**
 * What is done at the end of a request. (A function that stands where it is assigned to a property would be among V8's old
 * objects from its beginning, and the whole request with it; a bundler puts it there.)
 */
const ending = (
  stats: RequestStats,
  recorder: UsageRecorder["Service"] | undefined,
  watch: RequestWatch,
  span: Tracer.Span | undefined,
  clock: Clock.Clock
) =>
(): Effect.Effect<void> => {
  recorder?.ended(stats)
  stats.record?.ended()
  const told = watch.ended(stats, span)
  if (span === undefined) return told
  return Effect.map(told, () => span.end(clock.currentTimeNanosUnsafe(), Exit.void))
}

/** The effect that `make` returns; what it throws is a defect. */
const attempted = <A, E, R>(make: () => Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => {
  try {
    return make()
  } catch (defect) {
    return Effect.die(defect)
  }
}

/** What an edge adds to what its handler is given. */
type Adds<R> = (context: Context.Context<never>) => Context.Context<R>

/**
 * What every edge does, in one step before the handler and one after it: the request's record, its span, its end, and every
 * failure in the family's shape. `admit` looks at the request first, and gives what the handler is given besides.
 */
const edge = <R>(
  { errors, idHeader, style }: EdgeFacts,
  recorder: UsageRecorder["Service"] | undefined,
  admit: (
    request: HttpServerRequest.HttpServerRequest,
    stats: RequestStats,
    endpoint: HttpApiEndpoint.Top
  ) => Effect.Effect<Adds<R>, GatewayError>
) =>
<E, R2>(
  httpEffect: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R2>,
  { endpoint, group }: EdgeOptions
): Effect.Effect<HttpServerResponse.HttpServerResponse, never, Exclude<R2, R | CurrentRequest>> =>
  Effect.withFiber((fiber) => {
    const { context } = fiber
    const request = Context.getUnsafe(context, HttpServerRequest.HttpServerRequest)
    const scope = Context.getUnsafe(context, Scope.Scope)
    const clock = fiber.getRef(Clock.Clock)
    const watch = fiber.getRef(CurrentRequestWatch)
    // Whoever answers every request has begun its record.
    const begun = Context.getOrUndefined(context, CurrentRequest)
    const stats = begun ?? makeRequestStats(crypto.randomUUID(), monotonicMillis(clock))
    stats.style = style ?? group.identifier
    const outer = Option.getOrUndefined(HttpTraceContext.fromHeaders(request.headers))
    const handled = (span: Tracer.Span | undefined) => {
      const parent = span ?? outer
      stats.ended = ending(stats, recorder, watch, span, clock)
      return Effect.matchCauseEffect(
        attempted(() =>
          Effect.flatMapEager(
            admit(request, stats, endpoint),
            (adds) =>
              Effect.updateContext(
                httpEffect as Effect.Effect<HttpServerResponse.HttpServerResponse, E>,
                (context: Context.Context<never>) => {
                  const admitted = adds(context)
                  const known = begun === undefined ? Context.add(admitted, CurrentRequest, stats) : admitted
                  return parent === undefined ? known : Context.add(known, Tracer.ParentSpan, parent)
                }
              )
          )
        ),
        {
          onSuccess: (response) => Effect.succeed(answered(response, idHeader, stats, monotonicMillis(clock))),
          onFailure: (cause) =>
            Effect.map(
              rendered(errors, stats)(cause),
              (response) => answered(response, idHeader, stats, monotonicMillis(clock))
            )
        }
      )
    }
    const run = watch.traced
      ? Effect.flatMap(requestSpan(outer, endpoint, stats), handled)
      : handled(undefined)
    return begun === undefined
      ? Effect.andThen(Scope.addFinalizerExit(scope, () => endRecord(stats)), run)
      : run
  })

const nothing = Effect.succeed<Adds<never>>((context) => context)

/** The edge of endpoints whose credential, if they need one, is no business key. */
export const publicEdge = (facts: EdgeFacts) => edge(facts, undefined, () => nothing)

/** The edge of business endpoints: the credential is checked before the body is read. */
export const businessEdge = (facts: EdgeFacts) =>
  Effect.map(
    // Whoever has no use for records of requests leaves them out.
    Effect.all([Callers, UsageRecorder, Effect.serviceOption(Requests)]),
    ([callers, recorder, requests]) =>
      edge<CurrentCaller>(facts, recorder, (request, stats, endpoint) => {
        const token = credentialOf(request)
        const target = request.headers["x-gateway-target-account"]?.trim()
        if (token === undefined) return Effect.fail(missing)
        // A key that is disabled or expired is refused, and its requests are its own all the same.
        const identified = Effect.catchEager(
          callers.identify(token, target === "" ? undefined : target, addressOf(request)),
          (error) => {
            stats.key = callers.keyOf(token) ?? stats.key
            return Effect.fail(error)
          }
        )
        return Effect.mapEager(identified, (known) => {
          const key = keyOf(known)
          stats.key = key
          if (requests._tag === "Some" && endpoint.method === "POST") {
            stats.record = requests.value.begin({ facts: stats, key, head: () => headOf(request), secret: token })
          }
          return (context) => Context.add(context, CurrentCaller, known)
        })
      })
  )
