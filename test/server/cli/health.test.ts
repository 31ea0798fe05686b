/**
 * `health`, and the service's reports on inherited sockets, listen addresses and its build.
 */
import { assert, describe, it } from "@effect/vitest"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { closeSync, mkdtempSync, openSync, readFileSync } from "node:fs"
import { createServer as createHttpServer } from "node:http"
import { type AddressInfo, connect, createServer } from "node:net"
import { tmpdir } from "node:os"
import path from "node:path"
import { onTestFinished } from "vitest"
import { addressFrom, askHealth, parseHealth } from "../../../src/server/cli/health.ts"
import { service } from "../../support/service.ts"
import { run, start } from "./process.ts"

/** A server that answers a path with a status; null never answers. */
const answering = async (answers: Record<string, number | null>, answered?: (asked: Array<string>) => void) => {
  const asked: Array<string> = []
  const server = createHttpServer(({ url = "" }, response) => {
    asked.push(url)
    answered?.(asked)
    const status = answers[url] ?? 404
    if (answers[url] !== null) response.writeHead(status).end("{}")
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as AddressInfo
  return {
    asked,
    port: String(port),
    url: `http://127.0.0.1:${port}`,
    stop: () => {
      server.closeAllConnections()
      server.close()
    }
  }
}

describe("health", () => {
  it("asks the gateway of the same HOST and PORT, a wildcard as its loopback", async () => {
    const gateway = await answering({ "/readyz": 200, "/healthz": 200 })
    const env = { HOST: "0.0.0.0", PORT: gateway.port }
    const [ready, live] = await Promise.all([run(["health"], { env }), run(["health", "--live"], { env })])
    gateway.stop()
    assert.deepEqual([ready.code, ready.stdout, ready.stderr], [0, "ready\n", ""])
    assert.deepEqual([live.code, live.stdout, live.stderr], [0, "live\n", ""])
    assert.sameMembers(gateway.asked, ["/readyz", "/healthz"])
  })

  it.each([
    [{}, "http://127.0.0.1:5001"],
    [{ HOST: " ", PORT: " " }, "http://127.0.0.1:5001"],
    [{ HOST: "::", PORT: "80" }, "http://[::1]:80"],
    [{ HOST: "10.0.0.7" }, "http://10.0.0.7:5001"],
    [{ PORT: "0" }, undefined],
    [{ PORT: "many" }, undefined]
  ])("knows from %o where that is", (variables, address) => {
    assert.strictEqual(addressFrom(variables), address)
  })

  it("fails with a line that says what is wrong", async () => {
    const gateway = await answering({ "/below/readyz": 503, "/readyz": null })
    const ask = (url: string, ...more: Array<string>) => run(["health", "--url", url, ...more])
    const [draining, silent, closed, wrong] = await Promise.all([
      ask(`${gateway.url}/below/`),
      ask(gateway.url, "--timeout", "0.2"),
      ask("http://127.0.0.1:1"),
      ask("gateway")
    ])
    gateway.stop()
    assert.strictEqual(draining.stderr, `${gateway.url}/below/readyz answered with HTTP 503\n`)
    assert.strictEqual(silent.stderr, `${gateway.url}/readyz did not answer within 0.2 s\n`)
    assert.strictEqual(closed.stderr, "http://127.0.0.1:1/readyz cannot be reached (ECONNREFUSED)\n")
    assert.strictEqual(wrong.stderr, "gateway is not an http or https URL\n")
    for (const { code, stdout } of [draining, silent, closed, wrong]) assert.deepEqual([code, stdout], [1, ""])
  })

  it.each([
    ["http://user:secret@127.0.0.1:1/below", "http://127.0.0.1:1/below/readyz cannot be reached (ECONNREFUSED)"],
    ["ftp://user:secret@example.com/", "ftp://example.com/ is not an http or https URL"],
    ["http://user:secret@example.com:port", "http://example.com:port is not an http or https URL"],
    ["http://user:sec/ret@example.com", "http://example.com is not an http or https URL"],
    ["user:secret@example.com", "example.com is not an http or https URL"]
  ])("reports %s without the password", async (url, reason) => {
    assert.deepEqual(await askHealth(parseHealth(["--url", url])!, {}), { _tag: "No", reason })
  })

  it.each(["0.0015", "600.0005", "99999999"])("takes %s seconds for a time limit", async (timeout) => {
    const gateway = await answering({ "/readyz": 200, "/wait/readyz": null })
    const options = (url: string) => parseHealth(["--url", url, "--timeout", timeout])!
    const asked = timeout === "0.0015" ? options(`${gateway.url}/wait`) : options(gateway.url)
    const health = await askHealth(asked, {})
    gateway.stop()
    assert.deepEqual(
      health,
      timeout === "0.0015"
        ? { _tag: "No", reason: `${gateway.url}/wait/readyz did not answer within 0.0015 s` }
        : { _tag: "Yes", answer: "ready" }
    )
  })

  it("waits until the answer is yes", async () => {
    const answers = { "/readyz": 503 }
    const gateway = await answering(answers, (asked) => {
      if (asked.length === 3) answers["/readyz"] = 200
    })
    const health = await askHealth(parseHealth(["--url", gateway.url, "--wait", "60"])!, {})
    gateway.stop()
    assert.deepEqual([health, gateway.asked.length], [{ _tag: "Yes", answer: "ready" }, 3])
  })

  it("leaves to the whole command line what it does not know", async () => {
    assert.strictEqual(parseHealth(["--timeout", "soon"]), undefined)
    assert.strictEqual(parseHealth(["now"]), undefined)
    const [help, wrong] = await Promise.all([run(["health", "--help"]), run(["health", "--timeout", "soon"])])
    assert.match(help.stdout, /model-gateway health/)
    assert.strictEqual(wrong.code, 1)
    assert.match(wrong.stderr, /--timeout/)
  })

  it("loads nothing but Node's own modules", () => {
    const text = readFileSync(path.join(import.meta.dirname, "../../../src/server/cli/health.ts"), "utf8")
    const names = [...text.matchAll(/(?:from|import\()\s*"([^"]+)"/g)].map(([, name = ""]) => name)
    assert.isNotEmpty(names)
    assert.deepEqual(names.filter((name) => !name.startsWith("node:")), [])
  })
})

/** Starts the service on a listening socket that it inherits, with its standard error at `output`. From then on only it can answer. */
const startOnSocket = async (output: "pipe" | number, environment: Readonly<Record<string, string>> = {}) => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as AddressInfo
  const script = `LISTEN_PID=$$ LISTEN_FDS=1 PORT=1 exec "${process.execPath}" "${service}"`
  // Node exposes the descriptor of a socket only here.
  const { fd } = (server as unknown as { readonly _handle: { readonly fd: number } })._handle
  const child = spawn("sh", ["-c", script], {
    stdio: ["ignore", "ignore", output, fd],
    env: { ...process.env, ...environment }
  })
  server.close()
  onTestFinished(() => void child.kill("SIGKILL"))
  return { child, url: `http://127.0.0.1:${port}` }
}

describe("the service", () => {
  it("listens on a socket that it was handed", async () => {
    const { child, url } = await startOnSocket("pipe")
    const ended = once(child, "close")
    let said = ""
    await new Promise<void>((resolve, reject) => {
      child.stderr?.on("data", (text: Buffer) => {
        said += String(text)
        if (said.includes("listens on")) resolve()
      })
      void ended.then(() => reject(new Error(`ended: ${said}`)))
    })
    assert.include(said, `listens on ${url}\n`)
    assert.strictEqual((await fetch(`${url}/readyz`)).status, 200)
    child.kill("SIGTERM")
    const [code]: Array<unknown> = await ended
    assert.strictEqual(code, 0)
  })

  it("prints its banner, with the generated keys, before it answers a request", async () => {
    const folder = mkdtempSync(path.join(tmpdir(), "cli-"))
    const file = path.join(folder, "output")
    const output = openSync(file, "w")
    const { child, url } = await startOnSocket(output, {
      GATEWAY_CONFIG_PATH: path.join(folder, "config.json"),
      GATEWAY_ADMIN_KEY: ""
    })
    closeSync(output)
    const { hostname, port } = new URL(url)
    const early = connect(Number(port), hostname)
    early.write("GET /readyz HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n\r\n")
    const [reply]: Array<unknown> = await once(early, "data")
    // Node writes to files synchronously.
    const said = readFileSync(file, "utf8")
    assert.match(String(reply), /^HTTP\/1\.1 200 /)
    assert.include(said, `listens on ${url}\n`)
    assert.match(said, /^gateway key {3}\S+$/m)
    assert.match(said, /^admin key {5}\S+$/m)
    const ended = once(child, "close")
    child.kill("SIGTERM")
    await ended
  })

  it("listens on HOST and PORT where another process is meant by LISTEN_PID", async () => {
    const gateway = start([], { PORT: "0", LISTEN_PID: "1", LISTEN_FDS: "1" })
    await gateway.printed(/listens on http:\/\/127\.0\.0\.1:\d+\n/)
    gateway.child.kill("SIGTERM")
    assert.strictEqual((await gateway.ended).code, 0)
  })

  it.each([["127.0.0.1", true], ["0.0.0.0", false]])("in a container, on %s: warns: %s", async (HOST, warns) => {
    const gateway = start([], { PORT: "0", HOST, container: "podman" })
    await gateway.printed(/d '\{"model".*\n/)
    gateway.child.kill("SIGTERM")
    const { stdout } = await gateway.ended
    assert.strictEqual(/In a container, 127\.0\.0\.1 is reached only from inside/.test(stdout), warns)
  })

  it("says in one line that its configuration is a folder", async () => {
    const folder = mkdtempSync(path.join(tmpdir(), "cli-"))
    const { code, stderr, stdout } = await start([], { PORT: "0", GATEWAY_CONFIG_PATH: folder }).ended
    assert.deepEqual([code, stdout, stderr], [1, "", `${folder} is a folder, not a file\n`])
  })
})
