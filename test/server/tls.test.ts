/** TLS of the gateway's port: its files, their changes under open connections, and certificates of callers. */
import { afterAll, afterEach, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Logger } from "effect"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { get, request } from "node:https"
import { tmpdir } from "node:os"
import path from "node:path"
import { connect, type TLSSocket } from "node:tls"
import { decodeConfig } from "../../src/config/decodeConfig.ts"
import type { RawConfig } from "../../src/config/json.ts"
import { askHealth } from "../../src/server/cli/health.ts"
import { type Authority, makeAuthority } from "../support/certificates.ts"
import { adminKey, businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { chunk, frames, startOpenAiServer } from "../support/openaiServer.ts"
import { untilHolds } from "../support/until.ts"

let folder: string
let authority: Authority
let callers: Authority
let gateway: RunningGateway | undefined
const at = (name: string) => path.join(folder, name)
const lines: Array<string> = []

beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), "tls-"))
  authority = makeAuthority()
  callers = makeAuthority()
})
afterAll(() => rmSync(folder, { recursive: true }))
afterEach(async () => {
  await gateway?.stop()
  gateway = undefined
})

/** Writes a new certificate with its key. */
const write = (...names: ReadonlyArray<string>) => {
  const { cert, key } = authority.sign("IP:127.0.0.1", ...names)
  writeFileSync(at("cert.pem"), cert)
  writeFileSync(at("key.pem"), key)
}

const tls = () => ({ cert: at("cert.pem"), key: at("key.pem") })

const start = async (server: RawConfig, rest: RawConfig = {}) => {
  gateway = await startGateway({ server, ...rest }, {
    logger: Logger.make(({ message }) => void lines.push(String(message)))
  })
  return new URL(gateway.url).port
}

type Own = { readonly cert?: string; readonly key?: string }

const ask = (port: string, where: string, own: Own = {}, bearer = businessKey) =>
  new Promise<{ readonly status: number | undefined; readonly text: string }>((resolve, reject) => {
    const headers = { authorization: `Bearer ${bearer}` }
    get({ port, host: "127.0.0.1", path: where, ca: authority.cert, agent: false, headers, ...own }, (response) => {
      let text = ""
      response.on("data", (piece: Buffer) => text += piece.toString()).on(
        "end",
        () => resolve({ status: response.statusCode, text })
      )
    }).on("error", reject)
  })

const opened = (port: string, options: object = {}) =>
  new Promise<TLSSocket>((resolve, reject) => {
    const socket = connect(
      { port: Number(port), host: "127.0.0.1", ca: authority.cert, ALPNProtocols: ["h2", "http/1.1"], ...options },
      () => resolve(socket)
    ).on("error", reject)
  })

const namesOf = (socket: TLSSocket) => socket.getPeerCertificate().subjectaltname ?? ""

/** Waits until new connections have the certificate of a name. */
const untilServed = (port: string, name: string) =>
  untilHolds(async () => {
    const socket = await opened(port)
    const names = namesOf(socket)
    socket.destroy()
    return names.includes(name)
  })

/** A running request for a chat completion. */
const streaming = (port: string, body: RawConfig) => {
  let text = ""
  const ended = new Promise<void>((resolve, reject) => {
    const headers = { authorization: `Bearer ${businessKey}`, "content-type": "application/json" }
    request({ port, host: "127.0.0.1", path: "/v1/chat/completions", method: "POST", ca: authority.cert, headers }, (
      response
    ) => response.on("data", (piece: Buffer) => text += piece.toString()).on("end", resolve).on("error", reject))
      .on("error", reject).end(JSON.stringify(body))
  })
  return { ended, text: () => text }
}

/** A request on an open connection. */
const onSocket = (socket: TLSSocket) =>
  new Promise<string>((resolve) => {
    socket.once("data", (bytes: Buffer) => resolve(bytes.toString().split("\r\n")[0]!))
    socket.write("GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n")
  })

describe("TLS of the port", () => {
  it("has a changed certificate for new connections, keeps open ones, and keeps its certificate beside wrong files", async () => {
    write("DNS:first.test")
    const port = await start({ tls: tls() })
    const first = await opened(port)
    assert.strictEqual(first.alpnProtocol, "http/1.1")
    assert.include(namesOf(first), "first.test")
    assert.strictEqual((await ask(port, "/v1/models")).status, 200)
    writeFileSync(at("key.pem"), "no key")
    await untilHolds(() => lines.some((line) => /server\.tls\.key: must be the private key.*stays as it is/.test(line)))
    const kept = await opened(port)
    assert.include(namesOf(kept), "first.test")
    write("DNS:second.test")
    await untilServed(port, "second.test")
    assert.strictEqual(await onSocket(first), "HTTP/1.1 200 OK")
    first.destroy()
    kept.destroy()
    const health = await askHealth({ url: undefined, live: true, timeout: 5, wait: 0 }, { PORT: port })
    assert.deepEqual(health, { _tag: "Yes", answer: "live" })
  })

  it("refuses callers without a certificate of the authority on the chosen paths, and older versions of TLS", async () => {
    write("DNS:only.test")
    writeFileSync(at("callers.pem"), callers.cert)
    const port = await start({
      tls: { ...tls(), client_ca: at("callers.pem"), client_paths: "admin", min_version: "TLSv1.3" }
    })
    const known = callers.sign("DNS:colleague.test")
    const stranger = authority.sign("DNS:stranger.test")
    const admin = (own: Own) => ask(port, "/admin/version", own, adminKey)
    const statuses = await Promise.all([
      admin({}),
      admin(stranger),
      admin(known),
      ask(port, "/v1/models"),
      ask(port, "/readyz")
    ])
    assert.deepEqual(statuses.map(({ status }) => status), [401, 401, 200, 200, 200])
    assert.include(
      statuses[0].text,
      "This gateway serves callers with a client certificate (server.tls.client_ca): present one"
    )
    // Another spelling of a path leads to the same endpoint, and needs the certificate too.
    for (
      const path of ["/%61dmin/version", "//admin/version", "https://127.0.0.1/admin/version", "/metrics", "/console"]
    ) {
      const { status, text } = await ask(port, path, {}, adminKey)
      assert.strictEqual(status, 401, path)
      assert.include(text, "present one", path)
    }
    const older = await opened(port, { maxVersion: "TLSv1.2" }).then(() => "open", (error: Error) => error.message)
    assert.match(older, /protocol version/)
  })

  it.each(["api", "both"])("asks for a caller's certificate on the paths of %s", async (client_paths) => {
    write("DNS:only.test")
    writeFileSync(at("callers.pem"), callers.cert)
    const port = await start({ tls: { ...tls(), client_ca: at("callers.pem"), client_paths } })
    const known = callers.sign("DNS:colleague.test")
    const paths = ["/v1/models", "/docs", "/admin/version", "/console", "/healthz", "/readyz"]
    const statuses = (own: Own) =>
      Promise.all(paths.map(async (path) => [path, (await ask(port, path, own, adminKey)).status === 401]))
    const refusedOf = async (own: Own) => (await statuses(own)).flatMap(([path, isRefused]) => isRefused ? [path] : [])
    const api = ["/v1/models", "/docs"]
    const admin = ["/admin/version", "/console"]
    const wanted = client_paths === "api" ? api : [...api, ...admin]
    assert.deepEqual(await refusedOf({}), wanted)
    assert.deepEqual(await refusedOf(authority.sign("DNS:stranger.test")), wanted)
    assert.deepEqual((await refusedOf(known)).filter((path) => path !== "/v1/models"), [])
    assert.strictEqual((await ask(port, "/v1/models", known)).status, 200)
  })

  it("leaves a request that runs over a change of the files as it is", async () => {
    write("DNS:first.test")
    const server = await startOpenAiServer()
    const held = Promise.withResolvers<void>()
    server.answer(() => ({
      pieces: [
        frames(chunk({ role: "assistant", content: "One " })),
        held.promise,
        frames(chunk({ content: "two" }), chunk({}, "stop"), "[DONE]")
      ]
    }))
    try {
      const port = await start({ tls: tls() }, {
        upstream: { driver: "openai", base_url: server.baseUrl, models: { m: "m" } }
      })
      const running = streaming(port, { model: "m", stream: true, messages: [{ role: "user", content: "Count" }] })
      await untilHolds(() => running.text().includes("One "))
      write("DNS:second.test")
      await untilServed(port, "second.test")
      assert.notInclude(running.text(), "two")
      held.resolve()
      await running.ended
      assert.include(running.text(), "two")
      assert.include(running.text(), "[DONE]")
    } finally {
      held.resolve()
      await server.stop()
    }
  })

  it("needs readable files of one pair, and names the wrong setting", async () => {
    write("DNS:only.test")
    const refused = async (group: RawConfig) =>
      String(await start({ tls: { ...tls(), ...group } }).catch((error: unknown) => error))
    assert.include(await refused({ cert: at("none.pem") }), `server.tls.cert: ${at("none.pem")}: there is no such file`)
    writeFileSync(at("other.pem"), callers.key)
    assert.include(
      await refused({ key: at("other.pem") }),
      "server.tls.key: must be the private key of cert, both in PEM"
    )
    const raw = { server: { tls: { key: "k", cert: "-----BEGIN CERTIFICATE-----", client_paths: "all" } } }
    const { faults } = await Effect.runPromise(Effect.flip(decodeConfig(raw, { duplicates: "refuse" })))
    assert.deepEqual(faults.map(({ message }) => message), [
      "server.tls.cert must be the path of a file in PEM",
      "server.tls.client_paths must be one of api, admin, both"
    ])
  })
})
