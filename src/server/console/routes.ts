/**
 * The web console: one page and its files, below wherever the gateway is mounted.
 */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { sendFile, type SentFile } from "../sentFile.ts"
import { consoleFiles } from "./files.ts"
import { consoleHeaders } from "./headers.ts"

const plainText = (status: number, text: string, more: Readonly<Record<string, string>> = {}) =>
  HttpServerResponse.text(`${text}\n`, { status, headers: { ...consoleHeaders, "cache-control": "no-store", ...more } })

const notFound = plainText(404, "Not found")

const notBuilt = plainText(404, "The console's files are not there; the log says why.")

const send = (request: HttpServerRequest.HttpServerRequest, file: SentFile, cacheControl: string) =>
  sendFile(request, file, { ...consoleHeaders, "cache-control": cacheControl })

/** A route is asked with its path as it came: routers take `/console` and `/console/` for the same. */
const pathBelow = (url: string): string | undefined => {
  const path = url.split(/[?#]/, 1)[0]!
  return path.endsWith("/console") ? undefined : path.slice(path.lastIndexOf("/console/") + "/console/".length)
}

type Store = Context.Service.Shape<typeof ConfigStore>

const serveConsole = Effect.fnUntraced(function*(config: Store) {
  const request = yield* HttpServerRequest.HttpServerRequest
  if (!config.unsafeCurrent().console.enabled) return notFound
  const path = pathBelow(request.url)
  if (path === undefined) {
    // Relative, as the gateway does not know what a proxy in front of it takes off.
    return HttpServerResponse.empty({ status: 308, headers: { ...consoleHeaders, location: "console/" } })
  }
  const files = yield* consoleFiles
  if (files.size === 0) return notBuilt
  const page = files.get("index.html")
  if (path === "" && page !== undefined) return send(request, page, "no-cache")
  const asset = path.startsWith("assets/") ? files.get(path) : undefined
  return asset === undefined ? notFound : send(request, asset, "public, max-age=31536000, immutable")
})

const refuseMethod = (config: Store) =>
  Effect.sync(() =>
    config.unsafeCurrent().console.enabled ? plainText(405, "Method not allowed", { allow: "GET, HEAD" }) : notFound
  )

/** The console's routes below a path of an app's router, where `mountGateway` has the gateway. */
export const mountConsole = (mountPath: `/${string}` | "") =>
  Layer.unwrap(Effect.map(ConfigStore, (config) => {
    // Takes `/console` and `/console/` too.
    const path: `/${string}` = `${mountPath}/console/*`
    return HttpRouter.addAll([
      HttpRouter.route("GET", path, serveConsole(config)),
      ...(["POST", "PUT", "PATCH", "DELETE"] as const).map((method) =>
        HttpRouter.route(method, path, refuseMethod(config))
      )
    ])
  }))

/** Whoever opens the gateway's address is led to the console, or to the documents where that is off. */
const Front = Layer.unwrap(Effect.map(ConfigStore, (config) =>
  HttpRouter.add(
    "GET",
    "/",
    Effect.sync(() =>
      HttpServerResponse.empty({
        status: 302,
        // Relative, as the gateway does not know what a proxy in front of it takes off.
        headers: { location: config.unsafeCurrent().console.enabled ? "console/" : "docs", "cache-control": "no-store" }
      })
    )
  )))

/** The console's routes beside the gateway's, in the same router, and where the gateway's address leads. */
export const ConsoleRoutes = Layer.merge(mountConsole(""), Front)
