/**
 * `/openapi.json` and `/docs`: the API's document, and a page that shows it and sends requests, without any other host.
 *
 * Both are made when they are first asked for. Paths are relative to where the document is.
 */
import * as Effect from "effect/Effect"
import * as OpenApi from "effect/http-api/OpenApi"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import { GatewayApi } from "../Api.ts"

/** Below whatever path a proxy or an app has the gateway, its server is where its document is. */
const api = GatewayApi.annotate(OpenApi.Servers, [{ url: "." }])

/** Makes a reply when it is first asked for. */
const kept = <E, R>(make: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>) => {
  let made: HttpServerResponse.HttpServerResponse | undefined
  return Effect.suspend(() =>
    made !== undefined
      ? Effect.succeed(made)
      : Effect.tap(make, (response) => {
        made = response
        return Effect.void
      })
  )
}

const document = kept(
  Effect.sync(() => HttpServerResponse.text(JSON.stringify(OpenApi.fromApi(api)), { contentType: "application/json" }))
)

/** The page as the library makes it: its script is in it, so it is loaded only when somebody looks at it. */
const page = kept(
  Effect.gen(function*() {
    const { layer } = yield* Effect.promise(() => import("effect/http-api/HttpApiSwagger"))
    const router = yield* HttpRouter.make
    yield* Layer.build(Layer.provide(layer(api), Layer.succeed(HttpRouter.HttpRouter, router)))
    return yield* router.asHttpEffect()
  }).pipe(Effect.scoped, Effect.orDie)
)

/** The routes of the documents. */
export const Documents = HttpRouter.addAll([
  HttpRouter.route("GET", "/openapi.json", document),
  HttpRouter.route("GET", "/docs", page)
])
