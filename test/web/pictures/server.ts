/**
 * Serves the built console with fixed fonts in front of the gateway of the pictures. A state may replace replies, or change them.
 */
import { readFileSync } from "node:fs"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { createRequire } from "node:module"
import type { AddressInfo } from "node:net"
import path from "node:path"
import { text } from "node:stream/consumers"
import { cachedConsole } from "../../../scripts/console.ts"
import { adminKey } from "../../support/gateway.ts"
import { now, type World } from "./world.ts"

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

/** The pictures are signed in without a login. */
const session = {
  active: true,
  expires_at: Math.floor(now / 1000) + 3600,
  remaining_seconds: 3600,
  default_password_warning: false,
  role: "admin",
  name: null
}

/** For files that never change under their address, so that the browser compiles scripts once. */
const kept = "public, max-age=31536000, immutable"

const send = (response: ServerResponse, type: string, body: string | Buffer, cache = "no-store"): void => {
  response.writeHead(200, { "content-type": type, "cache-control": cache })
  response.end(body)
}

/** The gateway behind the server. */
export type Behind = Pick<World, "url" | "shown">

/** Asks the gateway. */
const ask = async (world: Behind, request: IncomingMessage, path: string): Promise<Response> => {
  const { method = "GET" } = request
  // Callers have keys of their own.
  const authorization = path.startsWith("/v1/") ? request.headers.authorization ?? "" : `Bearer ${adminKey}`
  const headers = { authorization }
  return method === "GET" ? fetch(world.url + path, { headers }) : fetch(world.url + path, {
    method,
    headers: { ...headers, "content-type": "application/json" },
    body: await text(request)
  })
}

/** What a gateway in another state replies, made of the reply of the one that runs. */
export type Changed = (reply: Json, query: URLSearchParams) => object

/** A reply as it is in JSON. */
// oxlint-disable-next-line typescript/no-explicit-any -- what a state changes of a reply, it knows.
export type Json = any

/**
 * In place of a reply: it never arrives, the connection breaks, the stream of events ends and none follows, or another text in a stream.
 * In place of events: the pool that they report.
 */
export type OwnReply = object | Changed | "held" | "broken" | "ends" | (string & {})

export interface FixedServer {
  readonly url: string
  /** Replies by their path in place of those of the gateway, and the gateway behind them, until the next call. */
  readonly answer: (replies: Readonly<Record<string, OwnReply>>, behind?: Behind) => void
  readonly stop: () => void
}

/** Passes the events of the gateway on, the pool as a state has it. */
const passEvents = async (
  world: Behind,
  response: ServerResponse,
  reply: OwnReply | undefined
): Promise<void> => {
  const left = new AbortController()
  response.on("close", () => left.abort())
  const events = await fetch(`${world.url}/admin/events`, {
    headers: { authorization: `Bearer ${adminKey}` },
    signal: left.signal
  })
  let rest = ""
  for await (const piece of events.body!.pipeThrough(new TextDecoderStream())) {
    const parts = (rest + piece).split("\n\n")
    rest = parts.pop()!
    for (const part of parts) {
      const [, data] = /^data: (.*)$/m.exec(part) ?? []
      const isChanged = typeof reply === "function" && part.includes("event: pool") && data !== undefined
      const changed = isChanged ? part.replace(data, () => JSON.stringify(reply(JSON.parse(data), nothing))) : part
      response.write(`${world.shown(changed)}\n\n`)
      if (reply === "ends" && part.includes("event: config")) return void response.end()
    }
  }
}

const nothing = new URLSearchParams()

/** Starts the server in front of a gateway. */
export const startFixed = async (world: World): Promise<FixedServer> => {
  const streams = new Set<ServerResponse>()
  let own: Readonly<Record<string, OwnReply>> = {}
  let behind: Behind = world
  const server: Server = createServer((request, response) => {
    // A page that hears nothing shows that its figures are old. Every page asks for something.
    for (const stream of streams) stream.write(": heartbeat\n\n")
    const { pathname, search, searchParams } = new URL(request.url ?? "/", "http://fixed")
    const font = fonts[pathname]
    if (font !== undefined) return send(response, types[".woff2"]!, font, kept)
    const isRead = request.method === "GET"
    const reply = isRead || pathname.startsWith("/v1/") ? own[pathname] : undefined
    if (reply === "held") return undefined
    if (reply === "broken") return void response.destroy()
    if (pathname === "/admin/events") {
      if (reply === "ends") own = { ...own, [pathname]: "held" }
      else {
        streams.add(response)
        response.on("close", () => streams.delete(response))
      }
      response.writeHead(200, { "content-type": "text/event-stream" })
      return void passEvents(behind, response, reply).catch(() => response.destroy())
    }
    if (pathname.startsWith("/console/")) {
      const file = pathname === "/console/" ? "index.html" : pathname.slice("/console/".length)
      const bytes = readFileSync(path.join(cachedConsole, path.normalize(`/${file}`)))
      const type = types[path.extname(file)] ?? "application/octet-stream"
      const body = file.endsWith(".css") ? Buffer.concat([bytes, Buffer.from(fixedFonts)]) : bytes
      return send(response, type, body, file.startsWith("assets/") ? kept : undefined)
    }
    if (typeof reply === "string") return send(response, "text/event-stream", reply)
    const fixed = typeof reply === "object" ? reply : isRead && pathname === "/admin/session" ? session : undefined
    if (fixed !== undefined) return send(response, "application/json", JSON.stringify(fixed))
    ask(behind, request, pathname + search).then(
      async (real) => {
        const body = await real.text()
        const changed = typeof reply === "function" ? JSON.stringify(reply(JSON.parse(body), searchParams)) : body
        response.writeHead(real.status, { "content-type": real.headers.get("content-type") ?? "text/plain" })
        response.end(behind.shown(changed))
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
    answer: (replies, gateway = world) => {
      own = replies
      behind = gateway
    },
    stop: () => {
      server.closeAllConnections()
      server.close()
    }
  }
}
