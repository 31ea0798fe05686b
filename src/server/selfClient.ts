/**
 * `SelfClient` over the router that the gateway's routes are built in, so that it works on a socket, as a web handler, and
 * below another router's prefix alike.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpEffect from "effect/http/HttpEffect"
import * as HttpRouter from "effect/http/HttpRouter"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { SelfClient } from "../admin/SelfClient.ts"
import { mountedAt } from "./mountedAt.ts"

/** Requests need an absolute address; no name is ever looked up. */
const origin = "http://gateway.internal"

/** Whether the gateway's router sees paths without what mounted it took off: true of a router of the gateway's own. */
export const PathsAreOwn = Context.Reference<boolean>("model-gateway/server/PathsAreOwn", {
  defaultValue: () => false
})

export const SelfClientLive: Layer.Layer<SelfClient, never, HttpRouter.HttpRouter> = Layer.effect(
  SelfClient,
  Effect.gen(function*() {
    const router = yield* HttpRouter.HttpRouter
    const prefix = (yield* PathsAreOwn) ? Effect.succeed("") : mountedAt
    const toWebHandler = HttpEffect.toWebHandlerWith<never, HttpServerRequest.HttpServerRequest | Scope.Scope>(
      yield* Effect.context()
    )
    let handler: ((request: Request) => Promise<Response>) | undefined
    const fetch: typeof globalThis.fetch = (input, init) => {
      // The routes are complete only when all layers are built.
      handler ??= toWebHandler(router.asHttpEffect())
      return handler(new Request(input, init))
    }
    return (yield* HttpClient.HttpClient).pipe(
      HttpClient.mapRequestEffect((request) =>
        Effect.map(prefix, (prefix) => HttpClientRequest.prependUrl(request, `${origin}${prefix}`))
      ),
      HttpClient.transform((response) => Effect.provideService(response, FetchHttpClient.Fetch, fetch))
    )
  })
).pipe(Layer.provide(FetchHttpClient.layer))
