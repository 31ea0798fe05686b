/**
 * Requests to the upstream as spans, and the trace context that goes with them where the configuration allows it.
 *
 * A span tells the method, the server and the status: neither query nor header nor body.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import type * as HttpClientError from "effect/http/HttpClientError"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as References from "effect/References"
import * as Tracer from "effect/Tracer"

/** The innermost span that is part of a trace: spans that nobody takes are passed over. */
const propagated = (span: Tracer.AnySpan | undefined): Tracer.AnySpan | undefined => {
  if (span === undefined || !Context.get(span.annotations, Tracer.DisablePropagation)) return span
  return span._tag === "Span" && span.parent._tag === "Some" ? propagated(span.parent.value) : undefined
}

/** The `traceparent` header of the W3C's Trace Context. */
const traceparent = (span: Tracer.AnySpan): string =>
  `00-${span.traceId.padStart(32, "0")}-${span.spanId}-${span.sampled ? "01" : "00"}`

const spanned = (
  reply: Effect.Effect<HttpClientResponse.HttpClientResponse, HttpClientError.HttpClientError>,
  request: HttpClientRequest.HttpClientRequest
) => {
  const url = URL.canParse(request.url) ? new URL(request.url) : undefined
  return reply.pipe(
    Effect.tap(({ status }) => Effect.annotateCurrentSpan("http.response.status_code", status)),
    Effect.withSpan(request.method, {
      kind: "client",
      attributes: {
        "http.request.method": request.method,
        ...(url === undefined ? {} : { "server.address": url.hostname, "url.path": url.pathname })
      }
    }, { captureStackTrace: false })
  )
}

/** A client whose requests are spans where spans are taken, and carry the trace on where `propagate` says so. */
export const withTracing = (client: HttpClient.HttpClient, propagate: () => boolean): HttpClient.HttpClient =>
  client.pipe(
    HttpClient.mapRequestEffect((request) =>
      Effect.withFiber((fiber) => {
        const span = propagate() ? propagated(Context.getOrUndefined(fiber.context, Tracer.ParentSpan)) : undefined
        return Effect.succeed(
          span === undefined ? request : HttpClientRequest.setHeader(request, "traceparent", traceparent(span))
        )
      })
    ),
    HttpClient.transform((reply, request) =>
      Effect.withFiber((fiber) => fiber.getRef(References.TracerEnabled) ? spanned(reply, request) : reply)
    )
  )
