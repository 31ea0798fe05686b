/**
 * The transport over an `HttpClient`: for apps that mount the gateway with their own client, and for tests.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { Deadlines } from "../../config/clock/Deadlines.ts"
import { CurrentShutdown } from "../../config/clock/Shutdown.ts"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { Exchange, Exchanges, leavingBody } from "../Exchange.ts"
import type { ExchangeRequest } from "../ExchangeRequest.ts"
import { traced } from "./traced.ts"

const toClientRequest = ({ body, headers, method, origin, path }: ExchangeRequest, exchange: Exchange) => {
  const request = HttpClientRequest.make(method)(`${origin}${path}`).pipe(HttpClientRequest.setHeaders(headers))
  const contentType = headers["content-type"] ?? "application/json"
  if (body === undefined) return request
  if (typeof body === "string") return HttpClientRequest.bodyText(request, body, contentType)
  if (!Stream.isStream(body)) return HttpClientRequest.bodyUint8Array(request, body, contentType)
  const length = headers["content-length"]
  const contentLength = length === undefined ? undefined : Number(length)
  return HttpClientRequest.bodyStream(request, leavingBody(body, exchange), { contentType, contentLength })
}

/** Runs a request and reports to the exchange. */
const send = (client: HttpClient.HttpClient, request: ExchangeRequest, exchange: Exchange, open: Latch.Latch) =>
  Effect.gen(function*() {
    const response = yield* HttpClient.withScope(client).execute(toClientRequest(request, exchange))
    exchange.began(response.status, response.headers)
    yield* Stream.runForEachArray(response.stream, (chunks) => {
      for (const chunk of chunks) exchange.received(chunk)
      return open.await
    })
    exchange.ended()
  }).pipe(
    Effect.scoped,
    Effect.catchCause((cause) =>
      Effect.sync(() => {
        const error = Cause.squash(cause)
        exchange.broke(isClientError(error) ? error.reason.cause : error)
      })
    )
  )

const isClientError = (error: unknown): error is { readonly reason: { readonly cause?: unknown } } =>
  typeof error === "object" && error !== null && "reason" in error && typeof error.reason === "object" &&
  error.reason !== null

/** Exchanges over a client; each request runs in its own fiber. */
export const exchangesOf = (
  client: HttpClient.HttpClient,
  deadlines: Deadlines["Service"],
  propagate: () => boolean
): Effect.Effect<Exchanges["Service"]> =>
  Effect.map(Effect.all([Effect.context<never>(), CurrentShutdown]), ([context, shutdown]) => {
    const run = Effect.runForkWith(context)
    return Exchanges.of({
      secrets: [],
      start: traced(propagate, (request, options) => {
        const exchange = new Exchange(options, deadlines, request.origin, shutdown)
        const open = Latch.makeUnsafe(true)
        const fiber = run(send(client, request, exchange, open))
        exchange.attach({
          pause: () => open.closeUnsafe(),
          resume: () => open.openUnsafe(),
          abort: () => fiber.interruptUnsafe()
        })
        return exchange
      })
    })
  })

/** Exchanges over the provided `HttpClient`. */
export const layerHttpClient: Layer.Layer<Exchanges, never, ConfigStore | Deadlines | HttpClient.HttpClient> = Layer
  .effect(
    Exchanges,
    Effect.gen(function*() {
      const store = yield* ConfigStore
      return yield* exchangesOf(
        yield* HttpClient.HttpClient,
        yield* Deadlines,
        () => store.now().telemetry.propagate
      )
    })
  )
