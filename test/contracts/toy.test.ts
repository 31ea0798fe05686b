/**
 * A contract is its folder and its rows: one of names and one of code (`contracts`), one for its driver (`upstream/protocols.ts`), and two
 * for its style (`styles/styles.ts` and its handlers). The rows are added to copies of the tables; everything else follows.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import type { OpenApi } from "effect/http-api"
import { mkdtempSync, rmSync } from "node:fs"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import path from "node:path"
import type * as Sides from "../../src/web/pages/requests/sides.ts"
import type * as Wire from "../../src/web/playground/wire.ts"
import type { RequestRecord } from "../../src/web/state/requests.ts"
import type * as Support from "../support/gateway.ts"
import { replacing } from "../support/replaced.ts"

const modules = replacing({
  "src/contracts/names.ts": "test/contracts/toy/tables/names.ts",
  "src/contracts/contracts.ts": "test/contracts/toy/tables/contracts.ts",
  "src/upstream/protocols.ts": "test/contracts/toy/tables/drivers.ts",
  "src/styles/styles.ts": "test/contracts/toy/tables/styles.ts",
  "src/styles/handlers.ts": "test/contracts/toy/tables/handlers.ts"
})

const seen: Array<{ readonly url: string | undefined; readonly key: unknown; readonly body: unknown }> = []

const answerModels = (response: ServerResponse) => {
  response.writeHead(200, { "content-type": "application/json" })
  response.end(`{"data":[{"id":"bear-1"}]}`)
}

const answer = (request: IncomingMessage, response: ServerResponse) => {
  let text = ""
  request.on("data", (chunk: Buffer) => text += chunk.toString())
  request.on("end", () => {
    if (request.method === "GET") return answerModels(response)
    const body = JSON.parse(text) as { readonly s: boolean; readonly t: ReadonlyArray<readonly [number, string]> }
    seen.push({ url: request.url, key: request.headers["x-toy-key"], body })
    if (body.t.at(-1)?.[1] === "Break") {
      response.writeHead(503, { "content-type": "application/json" })
      return response.end(`{"wrong":"the bear sleeps"}`)
    }
    if (!body.s) {
      response.writeHead(200, { "content-type": "application/json" })
      return response.end(`{"say":"Hello toy","end":["done",2000000,1000000]}`)
    }
    response.writeHead(200, { "content-type": "text/event-stream" })
    response.end(`data: ["say","Hello"]\n\ndata: ["say"," toy"]\n\ndata: ["end","done",2000000,1000000]\n\n`)
  })
}

const server = createServer(answer)
const folder = mkdtempSync(path.join(tmpdir(), "toy-"))
let gateway: Support.RunningGateway
let headers: Readonly<Record<string, string>>
let adminKey: string

beforeAll(async () => {
  const support = await modules.load<typeof Support>("test/support/gateway.ts")
  adminKey = support.adminKey
  headers = { authorization: `Bearer ${support.businessKey}`, "content-type": "application/json" }
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  gateway = await support.startGateway({
    upstream: { driver: "embedded" },
    upstreams: {
      gone: { driver: "openai", base_url: "http://127.0.0.1:9", models: { cub: "cub-1" } },
      box: { driver: "toy", base_url: `http://127.0.0.1:${port}/say`, models: { bear: "bear-1" } }
    },
    accounts: [{ upstream: "box", token: "toy-secret" }],
    routes: { away: ["box/bear", "default/upstream-chat"], home: ["gone/cub", "box/bear"] },
    prices: { "box/bear": { input: 1, output: 2 } },
    requests: { keep_bodies: true },
    samples: { dir: folder }
  })
})
afterAll(async () => {
  await gateway.stop()
  modules.end()
  server.close()
  rmSync(folder, { recursive: true })
})

const post = (at: string, body: object, as = headers) =>
  fetch(gateway.url + at, { method: "POST", headers: as, body: JSON.stringify(body) })

const asOperator = (at: string, body?: object) =>
  fetch(gateway.url + at, {
    ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
    headers: { ...headers, authorization: `Bearer ${adminKey}` }
  })

const admin = async <A>(at: string): Promise<A> => await (await asOperator(at)).json() as A

interface Listed {
  readonly items: ReadonlyArray<{ readonly id: string; readonly cost: number; readonly style: string }>
}

const messages = [{ role: "user", content: "Hi" }]
const turns = [[1, "Hi"]]

describe("a contract that is added by its folder and its rows", () => {
  it("is spoken to its servers for clients of every style, whole and streamed, with the key of its upstream", async () => {
    seen.length = 0
    const chat = await (await post("/v1/chat/completions", { model: "bear", messages })).json()
    assert.nestedPropertyVal(chat, "choices[0].message.content", "Hello toy")
    const message = await (await post("/v1/messages", { model: "bear", max_tokens: 9, messages })).json()
    assert.nestedPropertyVal(message, "content[0].text", "Hello toy")
    const streamed = await (await post("/v1/responses", { model: "bear", input: "Hi", stream: true })).text()
    assert.include(streamed, "response.completed")
    assert.lengthOf(seen, 3)
    for (const { body, key, url } of seen) {
      assert.strictEqual(key, "toy-secret")
      assert.strictEqual(url, "/say")
      assert.nestedPropertyVal(body, "m", "bear-1")
      assert.deepNestedPropertyVal(body, "t", turns)
    }
  })

  it("is served to its clients, whole and streamed, from servers of other contracts and of its own", async () => {
    const other = await (await post("/toy/say", { m: "upstream-chat", t: [[1, "!say Good day"]] })).json()
    assert.nestedPropertyVal(other, "say", "Good day")
    const own = await (await post("/toy/say", { m: "bear", t: turns })).json()
    assert.deepStrictEqual(own, { say: "Hello toy", end: ["done", 2_000_000, 1_000_000] })
    const streamed = await post("/toy/say", { m: "bear", t: turns, s: true })
    assert.strictEqual(
      await streamed.text(),
      `data: ["say","Hello"]\n\ndata: ["say"," toy"]\n\ndata: ["end","done",2000000,1000000]\n\n`
    )
  })

  it("has its own form of errors, with the id where its SDK looks: of its endpoints, and where no route is", async () => {
    const failures = [
      [await post("/toy/say", { m: "bear", t: turns }, { "content-type": "application/json" }), 401, "API key"],
      [await post("/toy/say", { m: "bear", t: [[7, "Hi"]] }), 400, "t[0][0]"],
      [await post("/toy/say", { m: "wolf", t: turns }), 400, "wolf"],
      [await post("/toy/say/more", {}), 404, "/toy/say/more"],
      [await fetch(`${gateway.url}/toy/say`), 405, "GET"],
      [await post("/toy/v1/chat/completions", {}), 404, "the client adds /toy to its base URL itself"]
    ] as const
    for (const [response, status, words] of failures) {
      const body = await response.json() as { readonly wrong: string }
      assert.deepEqual([response.status, Object.keys(body)], [status, ["wrong"]])
      assert.include(body.wrong, words)
      assert.strictEqual(response.headers.get("toy-id"), response.headers.get("x-request-id"))
    }
  })

  it("reports what its servers do not get", async () => {
    const response = await post("/v1/chat/completions", { model: "bear", messages, temperature: 0, verbosity: "low" })
    assert.strictEqual(response.headers.get("x-gateway-ignored"), "temperature,verbosity")
  })

  it("is asked from the playground of the console", async () => {
    const { wireOf } = await modules.load<typeof Wire>("src/web/playground/wire.ts")
    const { body, path } = wireOf({
      style: "toy" as "chat",
      model: "bear",
      system: "",
      turns: [{ role: "user", text: "Hi" }],
      stream: false,
      tools: false,
      ownTools: [],
      temperature: undefined,
      maxTokens: undefined,
      json: false
    })
    assert.nestedPropertyVal(await (await post(path, body)).json(), "say", "Hello toy")
  })

  it("is failed over from, with the words of its server, and to", async () => {
    const broken = await post("/toy/say", { m: "bear", t: [[1, "Break"]] })
    assert.strictEqual(broken.status, 503)
    assert.include(JSON.stringify(await broken.json()), "the bear sleeps")
    const from = await post("/toy/say", { m: "away", t: [[1, "Break"]] })
    assert.strictEqual(from.headers.get("x-gateway-upstream"), "default")
    const to = await post("/toy/say", { m: "home", t: [[1, "Hi"]] })
    assert.strictEqual(to.headers.get("x-gateway-upstream"), "box")
  })

  it("is recorded and priced, and its frames are read for the record", async () => {
    await (await post("/toy/say", { m: "bear", t: turns, s: true })).text()
    const { items: [newest] } = await admin<Listed>("/admin/requests?limit=1&style=toy")
    assert.nestedPropertyVal(newest, "style", "toy")
    const record = await admin<RequestRecord>(`/admin/requests/${newest!.id}`)
    assert.include(record.reply, { text: "Hello toy", finish: "done" })
    assert.strictEqual(record.cost, "4")
    const { readSides } = await modules.load<typeof Sides>("src/web/pages/requests/sides.ts")
    const sides = readSides(record)
    for (const side of [sides.client, sides.upstream]) {
      assert.deepStrictEqual(side.flatMap(({ parts }) => parts.map(({ kind, text }) => `${kind}: ${text}`)), [
        "text: Hello",
        "text:  toy",
        "usage: 2000000 + 1000000",
        "finish: done"
      ])
    }
  })

  it("is replayed from a sample of its server, in its style and in others", async () => {
    await (await post("/toy/say", { m: "bear", t: [[1, "Keep this"]], s: true })).text()
    const saved = await asOperator("/admin/dev/raw-samples/save", { query: "Keep this", sample_id: "kept" })
    assert.strictEqual(saved.status, 200, await saved.text())
    for (const [style, has] of [["toy", `["say","Hello`], ["chat", `"content":"Hello`]] as const) {
      const played = await asOperator("/admin/dev/raw-samples/replay", { sample_id: "kept", style, stream: true })
      assert.include(await played.text(), has)
    }
  })

  it("is a choice of the settings and of the forms, and is in the API documents and the metrics", async () => {
    assert.include(
      JSON.stringify(await admin("/admin/settings/fields")),
      `"embedded","session","openai","responses","messages","generate","toy"`
    )
    assert.include(JSON.stringify(await admin("/admin/upstreams")), `"driver":"toy"`)
    const document = await (await fetch(`${gateway.url}/openapi.json`)).json() as OpenApi.OpenAPISpec
    const operation = document.paths["/toy/say"]?.post
    assert.strictEqual(operation?.summary, "Say something")
    assert.deepEqual(operation?.security, [{ bearer: [] }, { apiKey: [] }])
    assert.containsAllKeys(operation?.responses, ["200", "400", "401", "422", "429", "503"])
    assert.deepInclude(document.tags, { name: "toy", description: "Toys" })
    assert.match(await (await asOperator("/metrics")).text(), /gateway_requests_total\{[^}]*style="toy"/)
  })
})
