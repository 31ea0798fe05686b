/**
 * Serves the web console: one page and its files, below the path where the gateway is mounted.
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

const notBuilt = plainText(404, "The console's files are missing; the log says why.")

const send = (request: HttpServerRequest.HttpServerRequest, file: SentFile, cacheControl: string) =>
  sendFile(request, file, { ...consoleHeaders, "cache-control": cacheControl })

/** The path below `/console/`; `undefined` for `/console` itself, which routers do not distinguish from `/console/`. */
const pathBelow = (url: string): string | undefined => {
  const path = url.split(/[?#]/, 1)[0]!
  return path.endsWith("/console") ? undefined : path.slice(path.lastIndexOf("/console/") + "/console/".length)
}

type Store = Context.Service.Shape<typeof ConfigStore>

const serveConsole = Effect.fnUntraced(function*(config: Store) {
  const request = yield* HttpServerRequest.HttpServerRequest
  if (!config.now().console.enabled) return notFound
  const path = pathBelow(request.url)
  if (path === undefined) {
    // Relative, because a proxy in front of the gateway may strip a prefix that the gateway does not know.
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
    config.now().console.enabled ? plainText(405, "Method not allowed", { allow: "GET, HEAD" }) : notFound
  )

/** The console's routes below a path of an app's router, for the gateway that `mountGateway` mounts there. */
export const mountConsole = (mountPath: `/${string}` | "") =>
  Layer.unwrap(Effect.map(ConfigStore, (config) => {
    // Matches `/console` and `/console/` too.
    const path: `/${string}` = `${mountPath}/console/*`
    return HttpRouter.addAll([
      HttpRouter.route("GET", path, serveConsole(config)),
      ...(["POST", "PUT", "PATCH", "DELETE"] as const).map((method) =>
        HttpRouter.route(method, path, refuseMethod(config))
      )
    ])
  }))

/** `/` redirects to the console, or to the API documents when the console is disabled. */
const Front = Layer.unwrap(Effect.map(ConfigStore, (config) =>
  HttpRouter.add(
    "GET",
    "/",
    Effect.sync(() =>
      HttpServerResponse.empty({
        status: 302,
        // Relative, as above.
        headers: { location: config.now().console.enabled ? "console/" : "docs", "cache-control": "no-store" }
      })
    )
  )))

/** The console's routes for the gateway's own router, and the redirect from `/`. */
export const ConsoleRoutes = Layer.merge(mountConsole(""), Front)
