/**
 * Exchanges as spans, and the trace context that goes with them where the configuration allows it.
 *
 * A span tells the method, the server and the status: neither query nor header nor body.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as References from "effect/References"
import * as Tracer from "effect/Tracer"
import type { Exchange, ExchangeOptions, ExchangeRequest, Exchanges } from "../Exchange.ts"

/** The innermost span that is part of a trace: spans that nobody takes are passed over. */
const propagated = (span: Tracer.AnySpan | undefined): Tracer.AnySpan | undefined => {
  if (span === undefined || !Context.get(span.annotations, Tracer.DisablePropagation)) return span
  return span._tag === "Span" && span.parent._tag === "Some" ? propagated(span.parent.value) : undefined
}

/** The `traceparent` header of the W3C's Trace Context. */
const traceparent = (span: Tracer.AnySpan): string =>
  `00-${span.traceId.padStart(32, "0")}-${span.spanId}-${span.sampled ? "01" : "00"}`

type Start = (request: ExchangeRequest, options: ExchangeOptions) => Exchange

/** Starts an exchange whose span ends when its head is there, or will never be. */
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

/** Starts exchanges that are spans where spans are taken, and that carry the trace on where `propagate` says so. */
export const traced = (propagate: () => boolean, start: Start): Exchanges["Service"]["start"] => (request, options) =>
  Effect.withFiber((fiber) => {
    const parent = propagate() ? propagated(Context.getOrUndefined(fiber.context, Tracer.ParentSpan)) : undefined
    const sent = parent === undefined
      ? request
      : { ...request, headers: { ...request.headers, traceparent: traceparent(parent) } }
    return fiber.getRef(References.TracerEnabled)
      ? spanned(start, sent, options)
      : Effect.succeed(start(sent, options))
  })
