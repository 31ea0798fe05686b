/**
 * The service as a process: its output, its end and its exit codes.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { spawnSync } from "node:child_process"
import { mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { make } from "../../../src/testing/Reference.ts"
import { Client } from "../../styles/responses/socket/client.ts"
import { type Running, start } from "./process.ts"

const config = JSON.stringify({ keys: ["key"] })
const onAnyPort = { PORT: "0", GATEWAY_CONFIG_JSON: config }

const urlOf = async (gateway: Running): Promise<string> => (await gateway.printed(/listens on (http:\/\/\S+)\n/))[1]!

const stream = (url: string, prompt: string) =>
  fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: "Bearer key" },
    body: JSON.stringify({ model: "upstream-chat", stream: true, messages: [{ role: "user", content: prompt }] })
  })

/** A gateway before a reference upstream, which does what the scripts in prompts say. */
const startScripted = async (args: ReadonlyArray<string>) => {
  const scope = Scope.makeUnsafe()
  const reference = await Effect.runPromise(make())
  const baseUrl = await Effect.runPromise(Scope.provide(reference.listen(), scope))
  const gateway = start(args, {
    PORT: "0",
    GATEWAY_CONFIG_JSON: JSON.stringify({
      keys: ["key"],
      accounts: [{ email: "a@x.org", password: "p" }],
      upstream: { driver: "session", base_url: baseUrl }
    })
  })
  return { gateway, reference, scope }
}

describe.concurrent("the service", () => {
  it("finishes its active requests at a signal, and exits with 0", async () => {
    const { gateway, reference, scope } = await startScripted([])
    const url = await urlOf(gateway)
    const reply = await stream(url, "!say one two\n!fault hang-mid-stream after=1")
    gateway.child.kill("SIGTERM")
    await gateway.printed(/Draining: 1 open requests/)
    const refused = await fetch(`${url}/v1/models`)
    assert.strictEqual(refused.status, 503)
    await Effect.runPromise(reference.cut())
    assert.match(await reply.text(), /data: \[DONE\]\n\n$/)
    const { code, stderr, stdout } = await gateway.ended
    await Effect.runPromise(Scope.close(scope, Exit.void))
    assert.strictEqual(code, 0)
    // Piped output is JSON lines only; the banner goes to the standard error.
    assert.match(stderr, /^Model Gateway listens on /)
    const lines = stdout.trimEnd().split("\n").map((line) => JSON.parse(line) as Record<string, unknown>)
    for (const line of lines) assert.isObject(line)
    assert.include(lines.map(({ message }) => message), "Drained: 0 open requests")
  })

  it("answers over WebSocket, and closes idle connections at a signal", async () => {
    const gateway = start([], onAnyPort)
    const client = await Client.open(await urlOf(gateway), { authorization: "Bearer key" })
    client.create({ input: "It is sunny." })
    assert.include((await client.response()).output_text, "“It is sunny.”")
    gateway.child.kill("SIGTERM")
    assert.strictEqual((await client.end()).code, 1001)
    assert.strictEqual((await gateway.ended).code, 0)
  })

  it("ignores SIGHUP, and ends its active requests with an error at a second signal", async () => {
    const { gateway, scope } = await startScripted(["serve"])
    const reply = await stream(await urlOf(gateway), "!pace 200ms\n!count 1000")
    // Without workers there is nothing to replace.
    gateway.child.kill("SIGHUP")
    gateway.child.kill("SIGINT")
    await gateway.printed(/Draining/)
    gateway.child.kill("SIGTERM")
    assert.match(await reply.text(), /"code":"shutting_down".*\n\ndata: \[DONE\]\n\n$/)
    const { code, signal, stdout } = await gateway.ended
    await Effect.runPromise(Scope.close(scope, Exit.void))
    assert.deepEqual([code, signal], [0, null])
    assert.match(stdout, /"outcome":"shutting_down"/)
  })

  it("says in one line that the port is taken", async () => {
    const gateway = start([], onAnyPort)
    const { port } = new URL(await urlOf(gateway))
    const second = await start([], { ...onAnyPort, PORT: port }).ended
    assert.deepEqual(second, {
      code: 1,
      signal: null,
      stdout: "",
      stderr:
        `Cannot listen on 127.0.0.1 port ${port}: another process already listens there; set PORT to another port\n`
    })
    gateway.child.kill("SIGINT")
    assert.strictEqual((await gateway.ended).code, 0)
  })

  it("says in one line each which variables are wrong", async () => {
    const { code, stderr, stdout } = await start([], { PORT: "abc", GATEWAY_LOG_LEVEL: "loud" }).ended
    assert.deepEqual([code, stdout], [1, ""])
    assert.match(stderr, /^PORT must be .*\nGATEWAY_LOG_LEVEL must be .*\n$/)
  })

  it("says in one line what is wrong with its configuration", async () => {
    const { code, stderr, stdout } = await start([], {
      ...onAnyPort,
      GATEWAY_CONFIG_JSON: "{\"runtime\":{\"account_max_inflight\":0}}"
    }).ended
    assert.deepEqual([code, stdout], [1, ""])
    assert.strictEqual(stderr, "GATEWAY_CONFIG_JSON: runtime.account_max_inflight must be between 1 and 256\n")
  })

  it("says what it runs on: file, upstream, accounts, and where other bearers go", async () => {
    const cwd = mkdtempSync(path.join(tmpdir(), "cli-"))
    writeFileSync(
      path.join(cwd, "own.json"),
      JSON.stringify({
        keys: ["secret-key"],
        accounts: [{ token: "t" }, { token: "u" }],
        upstream: { driver: "session", base_url: "http://user:hidden@127.0.0.1:9/base/" }
      })
    )
    const [named, missing] = [
      start(["--config", "own.json", "--port", "0"], {}, cwd),
      start(["--config", "none.json", "--port", "0"], {}, cwd)
    ]
    await Promise.all([named.printed(/curl -N/), missing.printed(/curl -N/)])
    named.child.kill("SIGTERM")
    missing.child.kill("SIGTERM")
    const said = (await named.ended).stderr
    assert.include(said, `config        ${path.join(cwd, "own.json")}\n`)
    assert.include(said, "upstream      session at http://127.0.0.1:9/base, 2 accounts\n")
    assert.include(said, "Unknown API keys are forwarded to the upstream as credentials.")
    assert.notMatch(said, /secret-key|hidden/)
    const unsaved = (await missing.ended).stderr
    assert.include(unsaved, `config        ${path.join(cwd, "none.json")} (not created yet; the admin API writes it)\n`)
    assert.include(unsaved, "upstream      embedded: ")
  })

  it("prints a call that works when pasted", async () => {
    const gateway = start(["--port", "0"], {}, mkdtempSync(path.join(tmpdir(), "cli-")))
    const [command] = await gateway.printed(/curl -N .*\n.*\n/)
    const { stdout } = spawnSync("sh", ["-c", command], { encoding: "utf8" })
    assert.match(stdout, /data: \[DONE\]/)
    gateway.child.kill("SIGTERM")
    await gateway.ended
  })

  it("follows its options before the environment", async () => {
    const file = path.join(mkdtempSync(path.join(tmpdir(), "cli-")), "own.json")
    writeFileSync(file, JSON.stringify({ keys: ["from-the-file"] }))
    const gateway = start(["--config", file, "--port", "0", "--log-level", "debug"], { ...onAnyPort, PORT: "1" })
    const url = await urlOf(gateway)
    const answer = (token: string) =>
      fetch(`${url}/v1/responses/resp_none`, { headers: { authorization: `Bearer ${token}` } })
    assert.strictEqual((await answer("from-the-file")).status, 404)
    await gateway.printed(/"level":"DEBUG"/)
    gateway.child.kill("SIGTERM")
    assert.strictEqual((await gateway.ended).code, 0)
  })
})
