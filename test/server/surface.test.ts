import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { once } from "node:events"
import { connect } from "node:net"
import { businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"

let gateway: RunningGateway

beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.stop())

const send = (method: string, path: string, headers: Record<string, string> = {}, body?: string) =>
  fetch(`${gateway.url}${path}`, { method, headers, ...(body === undefined ? {} : { body }) })

const hello = JSON.stringify({ model: "upstream-chat", messages: [{ role: "user", content: "!say hello" }] })

describe("health probes", () => {
  it("answer GET and HEAD without a credential", async () => {
    for (const [path, status] of [["/healthz", "ok"], ["/readyz", "ready"]] as const) {
      assert.deepInclude(await (await send("GET", path)).json(), { status })
      const head = await send("HEAD", path)
      assert.strictEqual(head.status, 200)
      assert.strictEqual(await head.text(), "")
    }
  })
})

describe("cross-origin requests", () => {
  it("are allowed from anywhere with the headers of the contract", async () => {
    const preflight = await send("OPTIONS", "/v1/chat/completions", {
      origin: "https://app.example",
      "access-control-request-method": "POST",
      "access-control-request-headers": "authorization"
    })
    assert.strictEqual(preflight.status, 204)
    assert.strictEqual(preflight.headers.get("access-control-allow-origin"), "*")
    const allowed = preflight.headers.get("access-control-allow-headers")!.split(",").map((name) => name.trim())
    assert.sameMembers(allowed, [
      "Content-Type",
      "Authorization",
      "X-API-Key",
      "X-Gateway-Target-Account",
      "X-Host-Protection-Bypass"
    ])
    const refused = await send("POST", "/v1/chat/completions", { origin: "https://app.example" }, "{}")
    assert.strictEqual(refused.status, 401)
    assert.strictEqual(refused.headers.get("access-control-allow-origin"), "*")
    assert.isNull(refused.headers.get("access-control-allow-credentials"))
    // Everything that the vendors' clients depend on, in every style.
    const exposed = refused.headers.get("access-control-expose-headers")!.toLowerCase().split(",")
    assert.includeMembers(exposed, [
      "x-request-id",
      "request-id",
      "retry-after",
      "x-should-retry",
      "x-gateway-upstream",
      "x-gateway-model",
      "x-gateway-ignored",
      "x-gateway-fault",
      "server-timing"
    ])
  })
})

/** Sends a raw request and returns the status. */
const raw = async (head: string) => {
  const { hostname, port } = new URL(gateway.url)
  const socket = connect(Number(port), hostname)
  socket.write(`${head}\r\nConnection: close\r\n\r\n`)
  let text = ""
  socket.on("data", (data) => text += data.toString())
  await once(socket, "close")
  return Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1])
}

describe("any Host", () => {
  it.each(["[", "a b", "]:x", "", "%ff", "a@b/c?d#e"])("is taken: %j", async (host) => {
    for (const path of ["/v1/models", "/healthz", "/openapi.json", "/docs", "/nope"]) {
      const status = await raw(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${businessKey}`)
      assert.strictEqual(status, path === "/nope" ? 404 : 200, path)
    }
  })
})

describe("a request without a route", () => {
  it("gets the gateway's own error on probes and unknown model methods too", async () => {
    const put = await send("PUT", "/healthz", { "x-request-id": "mine-7" })
    assert.strictEqual(put.status, 405)
    assert.strictEqual(put.headers.get("x-request-id"), "mine-7")
    assert.deepInclude((await put.json() as { error: object }).error, { code: "method_not_allowed" })
    for (const path of ["/v1beta/models/x:foo", "/v1/models/x:foo"]) {
      const unknown = await send("POST", path, { authorization: `Bearer ${businessKey}` }, "{}")
      assert.strictEqual(unknown.status, 404)
      assert.deepInclude((await unknown.json() as { error: object }).error, { status: "NOT_FOUND" })
    }
  })

  it("gets 404 in the error format of its family", async () => {
    const shapes: ReadonlyArray<readonly [string, (body: Record<string, unknown>) => boolean]> = [
      ["/nope", (body) => (body["error"] as { code: string }).code === "not_found"],
      ["/admin/nope", (body) => typeof body["detail"] === "string"],
      ["/v1beta/nope", (body) => (body["error"] as { status: string }).status === "NOT_FOUND"],
      ["/msgcompat/v1/nope", (body) => body["type"] === "error"]
    ]
    for (const [path, fits] of shapes) {
      const response = await send("GET", path)
      assert.strictEqual(response.status, 404, path)
      assert.isTrue(fits(await response.json() as Record<string, unknown>), path)
    }
  })

  it("gets 404 for an unknown operation on responses", async () => {
    const response = await send("POST", "/v1/responses/cancel")
    assert.strictEqual(response.status, 404)
    assert.strictEqual(response.headers.get("x-should-retry"), "false")
    const { error } = await response.json() as { readonly error: Record<string, unknown> }
    assert.deepInclude(error, { code: "not_found", message: "There is no endpoint POST /v1/responses/cancel" })
    const stored = await send("POST", "/v1/responses/resp_00000000000000000000000000000002")
    assert.strictEqual(stored.status, 405)
    assert.strictEqual(stored.headers.get("allow"), "GET, DELETE, HEAD")
  })

  it("gets 404 with what there is instead, for a vendor's API that the gateway does not serve", async () => {
    const instead = {
      "/v1/conversations": "/v1/responses",
      "/v1/conversations/conv_1/items": "/v1/responses",
      "/v1/files": "/v1/chat/completions",
      "/v1/files/file-1/content": "/v1/chat/completions",
      "/v1/batches": "/v1/chat/completions",
      "/v1/realtime": "/v1/responses",
      "/v1/realtime/sessions": "/v1/responses"
    }
    for (const [path, other] of Object.entries(instead)) {
      for (const method of ["GET", "POST"]) {
        const response = await send(method, path)
        const { error } = await response.json() as {
          readonly error: { readonly code: string; readonly message: string }
        }
        assert.deepStrictEqual([response.status, error.code], [404, "not_found"])
        assert.include(error.message, ` ${other}`)
      }
    }
  })

  it("gets 405 with Allow if the path has another method", async () => {
    const response = await send("GET", "/v1/chat/completions")
    assert.strictEqual(response.status, 405)
    assert.strictEqual(response.headers.get("allow"), "POST")
    const other = await send("DELETE", "/v1/models/x")
    assert.strictEqual(other.headers.get("allow"), "GET, HEAD")
    const unknown = await send("PURGE", "/v1/models")
    assert.strictEqual(unknown.status, 405)
    assert.strictEqual(unknown.headers.get("allow"), "GET, HEAD")
    for (const version of ["v1", "v1beta"]) {
      const asked = await send("GET", `/${version}/models/gemini-2.5-pro:generateContent`)
      assert.strictEqual(asked.status, 405)
      assert.strictEqual(asked.headers.get("allow"), "POST")
      assert.include(await asked.text(), "UNIMPLEMENTED")
      assert.strictEqual((await send("GET", `/${version}/models/qwen:8b`)).status, 200)
    }
  })

  it("gets 404 if a part of the path is too long or malformed", async () => {
    for (const path of ["/v1/models/%ZZ", `/v1/models/${"x".repeat(5000)}`]) {
      const response = await send("GET", path)
      assert.strictEqual(response.status, 404, path.slice(0, 20))
      assert.match(response.headers.get("x-request-id") ?? "", /^req_/)
      const { error } = await response.json() as { error: { code: string } }
      assert.strictEqual(error.code, "not_found")
    }
    const key = await send("DELETE", "/admin/keys/100%")
    assert.strictEqual(key.status, 404)
    assert.deepStrictEqual(await key.json(), { detail: "There is no endpoint DELETE /admin/keys/100%" })
  })

  it("gets the headers of its family", async () => {
    for (const [method, path] of [["GET", "/msgcompat/v1/nope"], ["PUT", "/v1/messages"]] as const) {
      const response = await send(method, path)
      const id = response.headers.get("request-id")
      assert.isNotNull(id)
      assert.strictEqual(id, response.headers.get("x-request-id"))
      assert.strictEqual((await response.json() as { request_id: string }).request_id, id)
    }
    for (const [method, path] of [["GET", "/admin/nope"], ["PUT", "/admin/login"]] as const) {
      assert.strictEqual((await send(method, path)).headers.get("cache-control"), "no-store")
    }
  })
})

describe("request ids", () => {
  it("are on every reply, and a caller's valid id is kept", async () => {
    for (const path of ["/healthz", "/v1/models", "/nope", "/v1/chat/completions"]) {
      assert.match((await send("GET", path)).headers.get("x-request-id") ?? "", /^req_[0-9a-f]{32}$/, path)
    }
    assert.strictEqual(
      (await send("GET", "/healthz", { "x-request-id": "mine-1" })).headers.get("x-request-id"),
      "mine-1"
    )
    const hostile = await send("GET", "/healthz", { "x-request-id": "a b\"<script>" })
    assert.match(hostile.headers.get("x-request-id") ?? "", /^req_/)
  })
})

describe("an invalid body", () => {
  const refusal = async (body: string) => {
    const response = await send("POST", "/v1/chat/completions", { authorization: `Bearer ${businessKey}` }, body)
    assert.strictEqual(response.status, 400, body)
    const { error } = await response.json() as { error: { message: string; param: string | null } }
    return [error.message, error.param]
  }

  it("is rejected with the name of the field as the caller wrote it", async () => {
    assert.deepStrictEqual(await refusal("[]"), ["The request body must be an object", null])
    assert.deepStrictEqual(await refusal("{}"), ["model: is required", "model"])
    assert.deepStrictEqual(await refusal(`{"model":"gpt-4o","messages":[]}`), [
      "messages[0]: is required",
      "messages[0]"
    ])
    assert.deepStrictEqual(await refusal(`{"model":"gpt-4o","messages":[5]}`), [
      "messages[0]: must be an object",
      "messages[0]"
    ])
  })

  it("is read as JSON with any content type and with a byte order mark", async () => {
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/vnd.api+json"]) {
      const headers = { authorization: `Bearer ${businessKey}`, "content-type": type }
      assert.strictEqual((await send("POST", "/v1/chat/completions", headers, `\uFEFF${hello}`)).status, 200, type)
    }
  })
})

describe("bodies that come slowly", () => {
  it("do not block others, however many there are", async () => {
    const { hostname, port } = new URL(gateway.url)
    const head = `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${businessKey}\r\n`
    const slow = await Promise.all(Array.from({ length: 50 }, async () => {
      const socket = connect(Number(port), hostname)
      await once(socket, "connect")
      socket.write(`${head}Content-Length: 1000000\r\n\r\n{"model":`)
      return socket
    }))
    const response = await send("POST", "/v1/chat/completions", { authorization: `Bearer ${businessKey}` }, hello)
    assert.strictEqual(response.status, 200)
    for (const socket of slow) socket.destroy()
  })
})

describe("a credential", () => {
  it("is taken from every source of the contract", async () => {
    const sources: ReadonlyArray<readonly [Record<string, string>, string]> = [
      [{ authorization: `Bearer ${businessKey}` }, ""],
      [{ authorization: `bearer ${businessKey}` }, ""],
      [{ "x-api-key": businessKey }, ""],
      [{ "x-gen-api-key": businessKey }, ""],
      [{ "x-goog-api-key": businessKey }, ""],
      [{}, `?key=${businessKey}`],
      [{}, `?api_key=${businessKey}`]
    ]
    for (const [headers, query] of sources) {
      const response = await send("POST", `/v1/chat/completions${query}`, headers, hello)
      assert.strictEqual(response.status, 200, JSON.stringify([headers, query]))
      assert.strictEqual(response.headers.get("x-gateway-upstream"), "embedded")
    }
  })

  it("that is absent or empty is a 401", async () => {
    for (const headers of [{}, { authorization: "Bearer " }, { authorization: "Basic abc" }, { "x-api-key": " " }]) {
      assert.strictEqual((await send("POST", "/v1/chat/completions", headers, hello)).status, 401)
    }
  })

  it("that names an unknown account to pin is a 400", async () => {
    const response = await send("POST", "/v1/chat/completions", {
      authorization: `Bearer ${businessKey}`,
      "x-gateway-target-account": "nobody@example.com"
    }, hello)
    assert.strictEqual(response.status, 400)
  })
})

describe("x-gateway-fault", () => {
  const asked = (path: string, text: string, stream: boolean) => {
    const chat = { model: "upstream-chat", messages: [{ role: "user", content: text }], max_tokens: 100, stream }
    const bodies: Readonly<Record<string, unknown>> = {
      "/v1/responses": { model: "upstream-chat", input: text, stream },
      "/v1/completions": { model: "upstream-chat", prompt: text, stream },
      "/v1beta/models/upstream-chat:generateContent": { contents: [{ parts: [{ text }] }] },
      "/v1beta/models/upstream-chat:streamGenerateContent": { contents: [{ parts: [{ text }] }] }
    }
    return JSON.stringify(bodies[path] ?? chat)
  }
  const styles = [
    "/v1/chat/completions",
    "/v1/responses",
    "/v1/messages",
    "/v1beta/models/upstream-chat:generateContent",
    "/v1beta/models/upstream-chat:streamGenerateContent"
  ]

  it("says who has to act, in every style, whole and at the start of a stream", async () => {
    const cases = [
      ["caller", "!fault too-long times=99"],
      ["upstream", "!fault trouble code=50000 times=99"]
    ] as const
    for (const path of styles) {
      for (const stream of [false, true]) {
        for (const [fault, text] of cases) {
          const response = await send(
            "POST",
            path,
            { authorization: `Bearer ${businessKey}` },
            asked(path, text, stream)
          )
          await response.text()
          assert.isAtLeast(response.status, 400, `${path} ${text}`)
          assert.strictEqual(response.headers.get("x-gateway-fault"), fault, `${path} ${text}`)
        }
      }
      const anonymous = await send("POST", path, {}, asked(path, "!say hello", false))
      assert.strictEqual(anonymous.headers.get("x-gateway-fault"), "caller", path)
      const good = await send(
        "POST",
        path,
        { authorization: `Bearer ${businessKey}` },
        asked(path, "!say hello", false)
      )
      assert.strictEqual(good.status, 200, await good.text())
      assert.isNull(good.headers.get("x-gateway-fault"), path)
    }
    // The only account is out of rotation afterwards.
    const suspended = asked(styles[0]!, "!fault rate-limited retry_after=3000 times=99", true)
    const last = await send("POST", styles[0]!, { authorization: `Bearer ${businessKey}` }, suspended)
    assert.strictEqual(last.headers.get("x-gateway-fault"), "account", await last.text())
  })

  it("is at errors of the other endpoints too", async () => {
    const key = { authorization: `Bearer ${businessKey}` }
    const cases = [
      ["POST", "/v1/embeddings", "{\"model\":\"upstream-chat\",\"input\":\"x\"}", "gateway"],
      ["POST", "/v1/moderations", "{}", "caller"],
      ["GET", "/v1/models/nothing", undefined, "caller"],
      ["GET", "/nope", undefined, "caller"],
      ["PUT", "/v1/messages", "{}", "caller"],
      ["GET", "/admin/queue/status", undefined, "caller"]
    ] as const
    for (const [method, path, body, fault] of cases) {
      const response = await send(method, path, key, body)
      assert.isAtLeast(response.status, 400, path)
      assert.strictEqual(response.headers.get("x-gateway-fault"), fault, path)
    }
  })
})
