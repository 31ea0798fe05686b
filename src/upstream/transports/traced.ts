/**
 * Spans of exchanges, the trace context in their requests if the configuration allows it, and their signatures.
 *
 * A span has the method, the server, the path and the status; it has no query, header or body.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as References from "effect/References"
import * as Tracer from "effect/Tracer"
import type { Exchange, ExchangeOptions, Exchanges } from "../Exchange.ts"
import type { ExchangeRequest, Sign } from "../ExchangeRequest.ts"

/** The innermost span that takes part in a trace; spans without propagation are skipped. */
const propagated = (span: Tracer.AnySpan | undefined): Tracer.AnySpan | undefined => {
  if (span === undefined || !Context.get(span.annotations, Tracer.DisablePropagation)) return span
  return span._tag === "Span" && span.parent._tag === "Some" ? propagated(span.parent.value) : undefined
}

/** The `traceparent` header (W3C Trace Context). */
const traceparent = (span: Tracer.AnySpan): string =>
  `00-${span.traceId.padStart(32, "0")}-${span.spanId}-${span.sampled ? "01" : "00"}`

type Start = (request: ExchangeRequest, options: ExchangeOptions) => Exchange

/** Starts an exchange with a span that ends with the head of the response, or when none will arrive. */
const spanned = (start: Start, request: ExchangeRequest, options: ExchangeOptions): Effect.Effect<Exchange> =>
  Effect.clockWith((clock) =>
    Effect.map(
      Effect.makeSpan(request.method, {
        kind: "client",
        attributes: {
          "http.request.method": request.method,
          "server.address": new URL(request.origin).hostname,
          "url.path": request.path.split("?", 1)[0]
        }
      }),
      (span) => {
        const exchange = start(request, options)
        exchange.onHead((status) => {
          if (status !== undefined) span.attribute("http.response.status_code", status)
          span.end(clock.currentTimeNanosUnsafe(), status === undefined ? Exit.fail("no reply") : Exit.void)
        })
        return exchange
      }
    )
  )

/** Starts an exchange with the signature of what leaves. */
const signed = (
  begin: Exchanges["Service"]["start"],
  request: ExchangeRequest,
  sign: Sign,
  options: ExchangeOptions
) =>
  Effect.flatMap(
    sign(request),
    (signature) => begin({ ...request, headers: { ...request.headers, ...signature }, sign: undefined }, options)
  )

/**
 * Starts exchanges with spans if tracing is enabled, with the trace context if `propagate` returns true, and with the signature of what leaves.
 */
export const traced = (propagate: () => boolean, start: Start): Exchanges["Service"]["start"] => (request, options) =>
  Effect.withFiber((fiber) => {
    const parent = propagate() ? propagated(Context.getOrUndefined(fiber.context, Tracer.ParentSpan)) : undefined
    const whole = parent === undefined
      ? request
      : { ...request, headers: { ...request.headers, traceparent: traceparent(parent) } }
    if (whole.sign !== undefined) return signed(traced(() => false, start), whole, whole.sign, options)
    return fiber.getRef(References.TracerEnabled)
      ? spanned(start, whole, options)
      : Effect.succeed(start(whole, options))
  })
