/**
 * Serves the built console with fixed replies of the admin API, fixed fonts, and a stream of events that stays open. What has
 * no fixed reply is asked of a running gateway.
 */
import { readFileSync } from "node:fs"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { createRequire } from "node:module"
import type { AddressInfo } from "node:net"
import path from "node:path"
import { text } from "node:stream/consumers"
import { cachedConsole } from "../../../scripts/console.ts"
import { adminKey } from "../../support/gateway.ts"
import * as data from "./data.ts"

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
  ".woff2": "font/woff2"
}

/** A file of a font package. */
const fontFile = (name: string, file: string): Buffer =>
  readFileSync(
    path.join(path.dirname(createRequire(import.meta.url).resolve(`${name}/package.json`)), "files", file)
  )

const fonts: Readonly<Record<string, Buffer>> = {
  "/font.woff2": fontFile("@fontsource-variable/inter", "inter-latin-wght-normal.woff2"),
  "/symbols.woff2": fontFile("@fontsource/noto-sans-symbols-2", "noto-sans-symbols-2-symbols-400-normal.woff2"),
  "/everything.woff2": fontFile("@fontsource/unifont", "unifont-latin-400-normal.woff2")
}

/** The typefaces of the pictures, in the order in which the browser looks for a glyph. */
export const typefaces = "Fixed, Signs, Everything"

/** One typeface for letters, one for signs, and one with a glyph for nearly every other character, so that a picture does not depend on the fonts of the machine. */
const fixedFonts = `
@font-face { font-family: Fixed; src: url(/font.woff2) format("woff2"); font-weight: 100 900 }
@font-face { font-family: Signs; src: url(/symbols.woff2) format("woff2") }
@font-face { font-family: Everything; src: url(/everything.woff2) format("woff2") }
*, ::before, ::after { font-family: ${typefaces} !important; animation: none !important; transition: none !important; caret-color: transparent !important }
`

/** A page of a list. */
export const list = (items: ReadonlyArray<object>, query: URLSearchParams, more: object = {}) => {
  const size = Number(query.get("page_size") ?? 50)
  return {
    items: items.slice(0, size),
    total: items.length,
    page: 1,
    page_size: size,
    total_pages: Math.ceil(items.length / size),
    ...more
  }
}

const store = { kind: "sqlite", persistent: true, detail: null }

/** The fixed reply of a path; `undefined` for other paths. */
export const fixedReply = (name: string, query: URLSearchParams): object | undefined => {
  const { pool } = data
  switch (name) {
    case "/admin/session":
      return {
        active: true,
        expires_at: Math.floor(data.now / 1000) + 3600,
        remaining_seconds: 3600,
        default_password_warning: false,
        role: "admin",
        name: null
      }
    case "/admin/accounts":
      return list(data.accounts, query, query.get("sort") === "state" ? { counts: data.counts } : {})
    case "/admin/keys":
      return list(data.keys, query, { store })
    case "/admin/queue/status":
      return {
        ...pool,
        ...data.queue,
        available_accounts: [],
        in_use_accounts: [],
        recommended_concurrency: 120,
        nodes: [],
        reason: null
      }
    case "/admin/minutes":
      return data.minutes
    case "/admin/requests":
      return query.get("status") === "open"
        ? { ...data.requestPage, items: data.requests.slice(0, 3) }
        : data.requestPage
    case "/admin/requests/facets":
      return data.facets
    case "/admin/requests/sessions":
      return data.recordedSessions(query)
    case "/admin/requests/histogram":
      return data.histogram
    case "/admin/requests/r3997":
      return data.failed
    case "/admin/requests/r3990":
      return data.streamed
    case "/admin/usage":
      return data.usage(query)
    case "/admin/changes":
      return data.changes
    default:
      return undefined
  }
}

/** What the stream of events begins with. */
const events = (pool: object = data.pool): string =>
  [
    ["hello", { version: "0.1.0", started_at: data.now - 86_400_000, revision: "1" }],
    ["pool", {
      ...pool,
      changed: data.accounts.filter(({ health, in_use, test_status }) =>
        in_use > 0 || health !== "ready" || test_status === "failed"
      ),
      more: false
    }],
    ["queue", data.queue],
    ["config", { revision: "1" }]
  ].map(([event, value]) => `event: ${String(event)}\ndata: ${JSON.stringify(value)}\n\n`).join("")

/** For files that never change under their address, so that the browser compiles scripts once. */
const kept = "public, max-age=31536000, immutable"

const send = (response: ServerResponse, type: string, body: string | Buffer, cache = "no-store"): void => {
  response.writeHead(200, { "content-type": type, "cache-control": cache })
  response.end(body)
}

/** What the gateway finds out about a server depends on the network of the machine. */
const withFixedFindings = (body: string): string => {
  const found = JSON.parse(body) as { readonly upstreams: ReadonlyArray<{ readonly name: string }> }
  const findings = ["upstream hosted does not answer: there is no such host"]
  const upstreams = found.upstreams.map((each) => ({ ...each, findings: each.name === "hosted" ? findings : [] }))
  return JSON.stringify({ ...found, upstreams })
}

/** Asks the gateway what has no fixed reply. */
const ask = async (gateway: string, request: IncomingMessage): Promise<Response> => {
  const { method = "GET", url = "" } = request
  const headers = { authorization: `Bearer ${adminKey}` }
  return method === "GET" ? fetch(gateway + url, { headers }) : fetch(gateway + url, {
    method,
    headers: { ...headers, "content-type": "application/json" },
    body: await text(request)
  })
}

/**
 * In place of a reply: it never arrives, the connection breaks, or the stream of events ends and none follows. In place of events: the
 * pool that they report.
 */
export type OwnReply = object | "held" | "broken" | "ends"

export interface FixedServer {
  readonly url: string
  /** Replies by their path in place of the fixed ones, until the next call. */
  readonly answer: (replies: Readonly<Record<string, OwnReply>>) => void
  readonly stop: () => void
}

/** Starts the server in front of a gateway. */
export const startFixed = async (gateway: string): Promise<FixedServer> => {
  const streams = new Set<ServerResponse>()
  let own: Readonly<Record<string, OwnReply>> = {}
  const server: Server = createServer((request, response) => {
    // A page that hears nothing shows that its figures are old. Every page asks for something.
    for (const stream of streams) stream.write(": heartbeat\n\n")
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://fixed")
    const font = fonts[pathname]
    if (font !== undefined) return send(response, types[".woff2"]!, font, kept)
    const reply = request.method === "GET" ? own[pathname] : undefined
    if (reply === "held") return undefined
    if (reply === "broken") return void response.destroy()
    if (reply === "ends") {
      own = { ...own, [pathname]: "held" }
      return send(response, "text/event-stream", events())
    }
    if (pathname === "/admin/events") {
      response.writeHead(200, { "content-type": "text/event-stream" })
      streams.add(response)
      response.on("close", () => streams.delete(response))
      return void response.write(events(reply))
    }
    if (pathname.startsWith("/console/")) {
      const file = pathname === "/console/" ? "index.html" : pathname.slice("/console/".length)
      const bytes = readFileSync(path.join(cachedConsole, path.normalize(`/${file}`)))
      const type = types[path.extname(file)] ?? "application/octet-stream"
      const body = file.endsWith(".css") ? Buffer.concat([bytes, Buffer.from(fixedFonts)]) : bytes
      return send(response, type, body, file.startsWith("assets/") ? kept : undefined)
    }
    const fixed = reply ?? (request.method === "GET" ? fixedReply(pathname, searchParams) : undefined)
    if (fixed !== undefined) return send(response, "application/json", JSON.stringify(fixed))
    ask(gateway, request).then(
      async (reply) => {
        response.writeHead(reply.status, { "content-type": reply.headers.get("content-type") ?? "text/plain" })
        const body = await reply.text()
        response.end(pathname === "/admin/upstreams" ? withFixedFindings(body) : body)
      },
      (reason: unknown) => {
        response.writeHead(502)
        response.end(String(reason))
      }
    )
    return undefined
  })
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve)
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    answer: (replies) => {
      own = replies
    },
    stop: () => {
      server.closeAllConnections()
      server.close()
    }
  }
}
