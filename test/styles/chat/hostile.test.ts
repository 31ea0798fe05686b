import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { request } from "node:http"
import { businessKey, type RunningGateway, startGateway } from "../../support/gateway.ts"
import { brokenBodies, mutations } from "../../support/hostile.ts"

let gateway: RunningGateway

beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.stop())

const post = async (body: string, headers: Record<string, string> = {}) => {
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    body,
    headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json", ...headers }
  })
  const text = await response.text()
  return { status: response.status, text, headers: response.headers }
}

const errorOf = (text: string): { message: string; type: string; code: string; param: string | null } =>
  (JSON.parse(text) as { error: { message: string; type: string; code: string; param: string | null } }).error

const valid = {
  model: "upstream-chat",
  stream: false,
  stream_options: { include_usage: true },
  temperature: 1,
  top_p: 0.5,
  max_tokens: 100,
  max_completion_tokens: 100,
  n: 1,
  stop: ["END"],
  seed: 1,
  presence_penalty: 0,
  frequency_penalty: 0,
  logit_bias: { "50256": -100 },
  parallel_tool_calls: true,
  reasoning_effort: "low",
  response_format: { type: "json_schema", json_schema: { name: "a", schema: { type: "object" }, strict: true } },
  tool_choice: { type: "function", function: { name: "f" } },
  tools: [{
    type: "function",
    function: { name: "f", description: "d", parameters: { type: "object" }, strict: false }
  }],
  messages: [
    { role: "system", content: "!call f {}" },
    {
      role: "user",
      content: [
        { type: "text", text: "hi" },
        { type: "image_url", image_url: { url: "data:image/png;base64,AA==", detail: "low" } },
        { type: "input_audio", input_audio: { data: "AA==", format: "wav" } },
        { type: "file", file: { filename: "a", file_data: "AA==" } }
      ]
    },
    {
      role: "assistant",
      content: null,
      tool_calls: [{ id: "c1", type: "function", function: { name: "f", arguments: "{}" } }]
    },
    { role: "tool", tool_call_id: "c1", content: "done" },
    { role: "user", content: "!call f {}" }
  ]
}

describe("a chat request", () => {
  it("is answered when it is valid", async () => {
    const { status, text } = await post(JSON.stringify(valid))
    assert.strictEqual(status, 200, text)
  })

  it("with any wrong value in any field is a 4xx that names the field, or is taken; never a 500", async () => {
    const wrong: Array<string> = []
    for (const { body, path, value } of mutations(valid)) {
      const { status, text } = await post(JSON.stringify(body))
      const place = `${path.join(".")} = ${JSON.stringify(value)}`
      if (status === 200 || status === 422) continue
      if (status !== 400) {
        wrong.push(`${place}: ${status} ${text}`)
        continue
      }
      const error = errorOf(text)
      const named = error.param?.split(/[.[]/)[0]
      // A choice that names a tool is what is wrong when the tool is not declared.
      const names = path[0] === "tools" ? ["tools", "tool_choice"] : [path[0]]
      if (error.code !== "model_not_found" && !names.includes(named)) wrong.push(`${place}: ${text}`)
    }
    assert.deepStrictEqual(wrong, [])
  })

  it("names the field at fault within a response_format", async () => {
    const formats: ReadonlyArray<readonly [format: unknown, param: string]> = [
      [{ type: "json_schema" }, "response_format.json_schema"],
      [{ type: "json_schema", json_schema: { schema: 5 } }, "response_format.json_schema.schema"],
      [{ type: "yaml" }, "response_format.type"]
    ]
    for (const [response_format, param] of formats) {
      const { text } = await post(JSON.stringify({ ...valid, response_format }))
      assert.strictEqual(errorOf(text).param, param)
    }
  })

  it("that is broken as a whole is a 400 in shape", async () => {
    for (const { body, name } of brokenBodies) {
      const { status, text } = await post(body)
      assert.strictEqual(status, 400, `${name}: ${text}`)
      assert.strictEqual(errorOf(text).type, "invalid_request_error", name)
    }
  })

  it("says where JSON breaks", async () => {
    const { text } = await post("{\"model\": \"upstream-chat\", }")
    assert.match(errorOf(text).message, /position|line|column/)
  })

  it("is read as JSON with any or no content type, and refused with 415 when it is not JSON", async () => {
    const body = JSON.stringify({ model: "upstream-chat", messages: [{ role: "user", content: "!say ok" }] })
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/json; charset=utf-8"]) {
      assert.strictEqual((await post(body, { "content-type": type })).status, 200, type)
    }
    const form = await post("a=b&c=d", { "content-type": "application/x-www-form-urlencoded" })
    assert.strictEqual(form.status, 415)
    assert.strictEqual(errorOf(form.text).code, "unsupported_media_type")
  })

  it("with broken JSON gets the place of the fault, whatever content type the client names", async () => {
    for (const type of ["text/plain;charset=UTF-8", "application/x-www-form-urlencoded", ""]) {
      const { status, text } = await post("{\"model\": \"upstream-chat\", }", { "content-type": type })
      assert.strictEqual(status, 400, `${type}: ${text}`)
      assert.strictEqual(errorOf(text).code, "invalid_request")
      assert.match(errorOf(text).message, /^The request body is not valid JSON: .*(?:position|line|column)/)
    }
  })

  it("of 40 MB is refused with the limit's name, announced or not", async () => {
    const body = Buffer.alloc(40 * 1024 * 1024, 32)
    for (const chunked of [false, true]) {
      const { status, text } = await new Promise<{ status: number | undefined; text: string }>((resolve, reject) => {
        const outgoing = request(`${gateway.url}/v1/chat/completions`, {
          method: "POST",
          headers: {
            authorization: `Bearer ${businessKey}`,
            ...(chunked ? { "transfer-encoding": "chunked" } : { "content-length": String(body.length) })
          }
        }, (response) => {
          let text = ""
          response.setEncoding("utf8").on("data", (piece: string) => text += piece)
          response.on("end", () => resolve({ status: response.statusCode, text }))
        })
        outgoing.on("error", reject)
        outgoing.end(body)
      })
      assert.strictEqual(status, 413, String(chunked))
      assert.include(errorOf(text).message, "32 MiB")
    }
  })

  it("without a credential is refused before its body is read", async () => {
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const outgoing = request(`${gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-length": "1000000" }
      }, (response) => {
        resolve(response.statusCode)
        outgoing.destroy()
      })
      outgoing.on("error", reject)
      outgoing.flushHeaders()
    })
    assert.strictEqual(status, 401)
  })
})
