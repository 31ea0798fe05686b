/**
 * The middleware of endpoints: who calls, the request's stats and span, and failures as responses in the family's shape.
 *
 * Errors become responses here and not through the endpoints' error schemas, because a response also needs headers
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
import { ignoredHeader } from "../completion/ignored.ts"
import { type Request, startRequest } from "../completion/Request.ts"
import {
  type AnsweringTarget,
  CurrentRequestWatch,
  faultOfRequest,
  type RequestStats,
  type RequestWatch
} from "../completion/RequestStats.ts"
import { CurrentBufferedBytes, CurrentLimits, HeldBytes } from "../config/limits.ts"
import { answerer } from "../contracts/drivers.ts"
import type { ErrorShape } from "../contracts/shared/errorShapes.ts"
import { GatewayError, gatewayError, operatorMessage } from "../domain/GatewayError.ts"
import { withoutKeyNames } from "../domain/limitHeaders.ts"
import { monotonicMillis } from "../domain/time.ts"
import type { EndpointPolicy } from "./EndpointPolicy.ts"
import { Entrance } from "./Entrance.ts"
import { schemaFault } from "./jsonBody.ts"
import { rateLimitHeaders } from "./rateLimitHeaders.ts"
import { errorResponse } from "./reply.ts"
import { CurrentCaller, CurrentRequest } from "./RequestContext.ts"

const isGatewayError = (error: unknown): error is GatewayError => error instanceof GatewayError

/** The error to send for a cause; `undefined` if the request was interrupted. */
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
    Effect.logError("A request failed because of a defect in the gateway", cause),
    gatewayError("internal_error", "An internal error occurred; the request id names it in the gateway's log")
  )
}

const rendered = (shape: ErrorShape, { id, stats }: Request) => (cause: Cause.Cause<unknown>) =>
  Effect.flatMap(toGatewayError(cause), (error) => {
    if (error === undefined) return Effect.interrupt
    stats.error = error.code
    stats.errorMessage = operatorMessage(error)
    stats.cause = error.cause
    return Effect.succeed(errorResponse(shape, error, id, faultOfRequest(stats)))
  })

/** The endpoint that a middleware protects. */
export interface EndpointOptions {
  readonly group: HttpApiGroup.Top
  readonly endpoint: HttpApiEndpoint.Top
}

/** The handler behind a middleware. */
export type Handled<R> = Effect.Effect<HttpServerResponse.HttpServerResponse, unhandled, R>

/** The request's span, a child of the caller's span if the request names one. It contains neither query nor headers. */
const requestSpan = (
  outer: Tracer.ExternalSpan | undefined,
  endpoint: HttpApiEndpoint.Top,
  { id, style }: Request
) =>
  Effect.makeSpan(`${endpoint.method} ${endpoint.path}`, {
    kind: "server",
    ...(outer === undefined ? {} : { parent: outer }),
    attributes: {
      "http.request.method": endpoint.method,
      "http.route": endpoint.path,
      "gateway.request_id": id,
      "gateway.style": style
    }
  })

/** Marks the responses of the embedded upstream, its errors included. */
const upstreamIsEmbedded = { "x-gateway-upstream": answerer }

const headerValue = (text: string): string => /^[\x21-\x7e]*$/.test(text) ? text : encodeURI(text.toWellFormed())

/** Names the upstream and the model that answered. */
const answererHeaders = ({ model, upstream }: AnsweringTarget) => ({
  "x-gateway-upstream": upstream,
  "x-gateway-model": headerValue(model)
})

const timing = (stats: RequestStats, now: number): string => {
  const waited = { queued: stats.queued, upstream: stats.upstream }
  // Headers may leave before the reply starts.
  if (stats.waiting !== undefined) waited[stats.waiting.for] += now - stats.waiting.since
  const gateway = Math.max(0, now - stats.startedAt - waited.queued - waited.upstream)
  const [queued, upstream, own] = [waited.queued, waited.upstream, gateway].map(Math.round)
  return `queue;dur=${queued}, upstream;dur=${upstream}, gateway;dur=${own}`
}

/** Records the response in the stats, and adds the headers made of them. */
const answered = (
  response: HttpServerResponse.HttpServerResponse,
  idHeader: string | undefined,
  { followers, id, stats }: Request,
  now: number
): HttpServerResponse.HttpServerResponse => {
  stats.status = response.status
  const headers: Record<string, string> = stats.rateLimits === undefined
    ? { ...stats.serverLimits }
    : { ...(stats.serverLimits && withoutKeyNames(stats.serverLimits)), ...rateLimitHeaders(stats.rateLimits) }
  if (idHeader !== undefined) headers[idHeader] = id
  const ignored = ignoredHeader(stats)
  if (ignored !== undefined) headers["x-gateway-ignored"] = ignored
  if (stats.fallback !== undefined) headers["x-gateway-fallback"] = stats.fallback.limit
  if (stats.attempts > 0) {
    headers["server-timing"] = timing(stats, now)
    if (stats.target !== undefined) {
      // Headers that leave before the reply starts name no upstream: another target may answer yet.
      if (stats.waiting === undefined) Object.assign(headers, answererHeaders(stats.target))
    } else {
      if (stats.model !== undefined) headers["x-gateway-model"] = headerValue(stats.model)
      if (stats.driver === answerer) Object.assign(headers, upstreamIsEmbedded)
    }
  }
  const complete = HttpServerResponse.setHeaders(response, headers)
  followers.recording?.responded(complete, id)
  return complete
}

/** Finishes the request, once. */
export const endRequest = ({ followers }: Request): Effect.Effect<void> => {
  const { ended } = followers
  followers.ended = undefined
  return ended?.() ?? Effect.void
}

/**
 * Makes the function that finishes a request: usage, recording, observers, span. A helper makes it because V8 pretenures function
 * literals that are assigned to properties (docs/contributing/benchmarks.md).
 */
const ending = (
  { followers, held, stats }: Request,
  watch: RequestWatch,
  span: Tracer.Span | undefined,
  clock: Clock.Clock
) =>
(): Effect.Effect<void> => {
  followers.usage?.ended(stats)
  held.release()
  followers.recording?.ended()
  const observed = watch.ended(stats, span)
  if (span === undefined) return observed
  return Effect.map(observed, () => span.end(clock.currentTimeNanosUnsafe(), Exit.void))
}

/** The effect that `make` returns; an exception of `make` is a defect. */
const attempted = <A, E, R>(make: () => Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => {
  try {
    return make()
  } catch (defect) {
    return Effect.die(defect)
  }
}

/** Adds the middleware's services to the handler's context. */
type Adds<R> = (context: Context.Context<never>) => Context.Context<R>

/**
 * The middleware of every endpoint, one step before the handler and one after it: stats, span, end of the request, and failures
 * in the family's shape. `admit` says who calls and provides the handler's services.
 */
const endpointMiddleware = <R>(
  policy: EndpointPolicy,
  admit: (
    source: HttpServerRequest.HttpServerRequest,
    request: Request
  ) => Effect.Effect<Adds<R | CurrentRequest>, GatewayError, Scope.Scope>
) =>
<E, R2>(
  httpEffect: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R2>,
  { endpoint, group }: EndpointOptions
): Effect.Effect<HttpServerResponse.HttpServerResponse, never, Exclude<R2, R | CurrentRequest> | Scope.Scope> =>
  Effect.withFiber((fiber) => {
    const { context } = fiber
    const source = Context.getUnsafe(context, HttpServerRequest.HttpServerRequest)
    const { errors, idHeader } = policy.inForm?.(source.headers) ?? policy
    const scope = Context.getUnsafe(context, Scope.Scope)
    const clock = fiber.getRef(Clock.Clock)
    const watch = fiber.getRef(CurrentRequestWatch)
    // The server's middleware for every request has started the request, if it is in use.
    const begun = Context.getOrUndefined(context, CurrentRequest)
    const request: Request = {
      ...begun ?? startRequest({
        id: crypto.randomUUID(),
        startedAt: monotonicMillis(clock),
        client: undefined,
        held: new HeldBytes(fiber.getRef(CurrentBufferedBytes), fiber.getRef(CurrentLimits))
      }),
      style: policy.style ?? group.identifier,
      errorFamily: errors.family,
      callerHeaders: source.headers
    }
    request.stats.style = request.style
    const outer = Option.getOrUndefined(HttpTraceContext.fromHeaders(source.headers))
    const handled = (span: Tracer.Span | undefined) => {
      const parent = span ?? outer
      request.followers.ended = ending(request, watch, span, clock)
      return Effect.matchCauseEffect(
        attempted(() =>
          Effect.flatMapEager(
            admit(source, request),
            (adds) =>
              Effect.updateContext(
                httpEffect as Effect.Effect<HttpServerResponse.HttpServerResponse, E>,
                (context: Context.Context<never>) => {
                  const known = adds(context)
                  return parent === undefined ? known : Context.add(known, Tracer.ParentSpan, parent)
                }
              )
          )
        ),
        {
          onSuccess: (response) => Effect.succeed(answered(response, idHeader, request, monotonicMillis(clock))),
          onFailure: (cause) =>
            Effect.map(
              rendered(errors, request)(cause),
              (response) => answered(response, idHeader, request, monotonicMillis(clock))
            )
        }
      )
    }
    const run = watch.traced
      ? Effect.flatMap(requestSpan(outer, endpoint, request), handled)
      : handled(undefined)
    return begun === undefined
      ? Effect.andThen(Scope.addFinalizerExit(scope, () => endRequest(request)), run)
      : run
  })

/** Middleware without a business key: public endpoints, and those that authenticate in another way. */
export const publicMiddleware = (facts: EndpointPolicy) =>
  endpointMiddleware<never>(
    facts,
    (_, request) => Effect.succeed((context) => Context.add(context, CurrentRequest, request))
  )

/** Middleware of endpoints for callers, who are known before the body is read. */
export const businessMiddleware = (facts: EndpointPolicy) =>
  Effect.map(
    Entrance,
    ({ enter }) =>
      endpointMiddleware<CurrentCaller>(facts, (source, running) =>
        Effect.mapEager(enter(source, running, facts), ({ caller, request }) =>
        (context: Context.Context<never>) =>
          Context.add(Context.add(context, CurrentCaller, caller), CurrentRequest, request)))
  )
