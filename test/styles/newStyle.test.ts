/** A new style is its folder (`toy`), its line in the list of styles and its line among what serves them; all else follows. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import type { OpenApi } from "effect/http-api"
import type * as Support from "../support/gateway.ts"
import { replacing } from "../support/replaced.ts"

const modules = replacing({
  "src/styles/styles.ts": "test/styles/toy/styles.ts",
  "src/styles/handlers.ts": "test/styles/toy/handlersOfAll.ts"
})

let gateway: Support.RunningGateway
let key: string
let adminKey: string

beforeAll(async () => {
  const support = await modules.load<typeof Support>("test/support/gateway.ts")
  key = support.businessKey
  adminKey = support.adminKey
  gateway = await support.startGateway()
})
afterAll(async () => {
  await gateway.stop()
  modules.end()
})

const send = (path: string, body: unknown, headers: Record<string, string> = { authorization: `Bearer ${key}` }) =>
  fetch(`${gateway.url}${path}`, { method: "POST", headers, body: JSON.stringify(body) })

const hello = { toy: "upstream-chat", say: "!text Hello" }

describe("a style that is added", () => {
  it("answers whole and as a stream", async () => {
    const whole = await send("/toy/play", hello)
    assert.strictEqual(whole.status, 200)
    const { said } = await whole.json() as { readonly said: string }
    assert.include(said, "Hello")
    const stream = await send("/toy/play", { ...hello, bit_by_bit: true })
    assert.match(stream.headers.get("content-type") ?? "", /^text\/event-stream/)
    const pieces = [...(await stream.text()).matchAll(/^data: (.*)$/gm)].map(([, json]) =>
      (JSON.parse(json!) as { readonly said: string }).said
    )
    assert.strictEqual(pieces.join(""), said)
  })

  it("words every failure its own way, with its id where its SDK looks: of its endpoints, and where no route is", async () => {
    const failures = [
      [await send("/toy/play", hello, {}), 401, "authentication_failed"],
      [await send("/toy/play", { ...hello, say: "" }), 400, "invalid_request"],
      [await send("/toy/play", { ...hello, toy: "no-such-toy" }), 400, "model_not_found"],
      [await send("/toy/play/more", hello), 404, "not_found"],
      [await fetch(`${gateway.url}/toy/play`), 405, "method_not_allowed"]
    ] as const
    for (const [response, status, broken] of failures) {
      const body = await response.json() as Readonly<Record<string, unknown>>
      assert.deepEqual([response.status, body["broken"], Object.keys(body)], [status, broken, [
        "broken",
        "why",
        "where"
      ]])
      assert.strictEqual(response.headers.get("toy-id"), response.headers.get("x-request-id"))
    }
  })

  it("is in the API documents, with who may call and what it may fail with", async () => {
    const document = await (await fetch(`${gateway.url}/openapi.json`)).json() as OpenApi.OpenAPISpec
    const operation = document.paths["/toy/play"]?.post
    assert.strictEqual(operation?.summary, "Play with a toy")
    assert.deepEqual(operation?.security, [{ bearer: [] }, { apiKey: [] }])
    assert.containsAllKeys(operation?.responses, ["200", "400", "401", "422", "429", "503"])
    assert.deepInclude(document.tags, { name: "toy", description: "Toys" })
  })

  it("is hinted at where its base URL is doubled", async () => {
    const response = await send("/toy/v1/chat/completions", hello)
    const { why } = await response.json() as { readonly why: string }
    assert.include(why, "the client adds /toy to its base URL itself")
  })

  it("is counted under its name", async () => {
    const metrics = await fetch(`${gateway.url}/metrics`, { headers: { authorization: `Bearer ${adminKey}` } })
    assert.match(await metrics.text(), /gateway_requests_total\{[^}]*style="toy"/)
  })
})
