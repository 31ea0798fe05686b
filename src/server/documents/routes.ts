/**
 * `/openapi.json` and `/docs`: the API's document, and a page that shows it and sends requests, without any other host.
 *
 * Both are made when they are first asked for. Paths are relative to where the gateway is mounted.
 */
import * as Effect from "effect/Effect"
import * as OpenApi from "effect/http-api/OpenApi"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import { GatewayApi } from "../Api.ts"
import { mountedAt } from "../mountedAt.ts"

/** The API as it is seen below a path. */
const apiAt = (prefix: string) => GatewayApi.annotate(OpenApi.Servers, [{ url: prefix === "" ? "/" : prefix }])

type Made<A> = { readonly prefix: string; readonly value: A } | undefined

/** Keeps what was made for the last prefix: there is one, unless the gateway is mounted below a path with parameters. */
const keptByPrefix = <A, E, R>(make: (prefix: string) => Effect.Effect<A, E, R>) => {
  let made: Made<A>
  return Effect.flatMap(mountedAt, (prefix) =>
    made !== undefined && made.prefix === prefix
      ? Effect.succeed(made.value)
      : Effect.tap(make(prefix), (value) => {
        made = { prefix, value }
        return Effect.void
      }))
}

const document = keptByPrefix((prefix) =>
  Effect.sync(() =>
    HttpServerResponse.text(JSON.stringify(OpenApi.fromApi(apiAt(prefix))), { contentType: "application/json" })
  )
)

/** The page as the library makes it: its script is in it, so it is loaded only when somebody looks at it. */
const page = keptByPrefix((prefix) =>
  Effect.gen(function*() {
    const { layer } = yield* Effect.promise(() => import("effect/http-api/HttpApiSwagger"))
    const router = yield* HttpRouter.make
    yield* Layer.build(Layer.provide(layer(apiAt(prefix)), Layer.succeed(HttpRouter.HttpRouter, router)))
    return yield* router.asHttpEffect()
  }).pipe(Effect.scoped, Effect.orDie)
)

/** The routes of the documents. */
export const Documents = HttpRouter.addAll([
  HttpRouter.route("GET", "/openapi.json", document),
  HttpRouter.route("GET", "/docs", page)
])
