/**
 * `/openapi.json`, and `/docs`, a page that shows the document and sends requests, without other hosts.
 *
 * Each is generated on first request and shared as the same bytes. Paths are relative to the document.
 */
import * as Effect from "effect/Effect"
import * as OpenApi from "effect/http-api/OpenApi"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import { createHash } from "node:crypto"
import { GatewayApi } from "../Api.ts"
import { sendFile } from "../sentFile.ts"
import { type Made, made } from "./made.ts"

/** A relative server address works below any prefix of a proxy or an app. */
const api = GatewayApi.annotate(OpenApi.Servers, [{ url: "." }])

/**
 * Replies with a document that the first request generates. Others wait for it, also if the first client disconnects.
 */
const sent = (make: () => Promise<Made>) => {
  let making: Promise<Made> | undefined
  return Effect.map(
    Effect.all([HttpServerRequest.HttpServerRequest, Effect.promise(() => making ??= make())]),
    ([request, { file, headers }]) => sendFile(request, file, headers)
  )
}

const document = () => made(JSON.stringify(OpenApi.fromApi(api)), "application/json", {})

const swaggerPage = Effect.gen(function*() {
  const { layer } = yield* Effect.promise(() => import("effect/http-api/HttpApiSwagger"))
  const router = yield* HttpRouter.make
  yield* Layer.build(Layer.provide(layer(api), Layer.succeed(HttpRouter.HttpRouter, router)))
  const request = HttpServerRequest.fromWeb(new Request("http://localhost/docs"))
  const response = yield* Effect.provideService(router.asHttpEffect(), HttpServerRequest.HttpServerRequest, request)
  return yield* Effect.promise(() => HttpServerResponse.toWeb(response).text())
}).pipe(Effect.scoped, Effect.orDie)

/** Allows only the page's own inline script and its own origin. */
const policyOf = (page: string): string => {
  const start = page.indexOf("<script>") + "<script>".length
  const script = page.slice(start, page.indexOf("</script>", start))
  const hash = createHash("sha256").update(script).digest("base64")
  return `default-src 'none'; script-src 'sha256-${hash}'; style-src 'unsafe-inline'; img-src 'self' data:; ` +
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}

/** The library's page. Its script is inlined, so it is loaded only on demand. */
const page = async () => {
  const text = await Effect.runPromise(swaggerPage)
  return made(text, "text/html; charset=utf-8", { "content-security-policy": policyOf(text) })
}

export const Documents = HttpRouter.addAll([
  HttpRouter.route("GET", "/openapi.json", sent(document)),
  HttpRouter.route("GET", "/docs", sent(page))
])
