/**
 * `SelfClient` over the router that holds the gateway's routes, so that it works on a socket, as a web handler, and below another
 * router's prefix.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpEffect from "effect/http/HttpEffect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import { SelfClient } from "../admin/SelfClient.ts"

/** The prefix that routers removed from the current request's path; empty without one or outside a request. */
export const mountedAt: Effect.Effect<string> = Effect.map(
  Effect.serviceOption(HttpServerRequest.HttpServerRequest),
  Option.match({
    onNone: () => "",
    onSome: ({ originalUrl, url }) => {
      const path = pathOf(originalUrl)
      const own = pathOf(url)
      return path.endsWith(own) ? path.slice(0, path.length - own.length) : ""
    }
  })
)

/** The path of a URL. The authority is the caller's `Host` header, which may be malformed. */
const pathOf = (url: string): string => /^(?:[a-z][a-z0-9+.-]*:\/\/[^/?#]*)?([^?#]*)/i.exec(url)?.[1] ?? ""

/** Requests need an absolute address; this name is never resolved. */
const origin = "http://gateway.internal"

/** Whether the gateway's router sees paths without the mount prefix, as a dedicated router does. */
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
      // The routes are complete only after all layers are built.
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
