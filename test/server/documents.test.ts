/**
 * The API documents and the typed client, against a running gateway.
 */
import { NodeHttpClient } from "@effect/platform-node"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Validator } from "@seriousme/openapi-schema-validator"
import { Effect } from "effect"
import { HttpApi, type OpenApi } from "effect/http-api"
import { createHash } from "node:crypto"
import { once } from "node:events"
import { get, type IncomingMessage } from "node:http"
import { buffer } from "node:stream/consumers"
import { brotliDecompressSync, gunzipSync } from "node:zlib"
import { GatewayApi, makeAdminClient } from "../../src/api.ts"
import { GatewayError } from "../../src/domain/GatewayError.ts"
import { adminKey, businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"

let gateway: RunningGateway
let document: OpenApi.OpenAPISpec
beforeAll(async () => {
  gateway = await startGateway({ embeddings: { provider: "builtin" } })
  document = await (await fetch(`${gateway.url}/openapi.json`)).json() as OpenApi.OpenAPISpec
})
afterAll(() => gateway.stop())

const methods = ["get", "post", "put", "patch", "delete", "head"] as const

const everyOperation = () =>
  Object.entries(document.paths).flatMap(([path, item]) =>
    methods.flatMap((method) => {
      const operation = item[method]
      return operation === undefined ? [] : [{ method, path, operation }]
    })
  )

const takesBody = (method: string) => ["post", "put", "patch"].includes(method)

/** Unknown ids. */
const withParameters = (path: string) => path.replaceAll("{model}", "upstream-chat").replaceAll(/\{\w+\}/g, "none")

const call = (path: string, method: string, headers: Record<string, string>, body?: unknown) =>
  fetch(`${gateway.url}${withParameters(path)}`, {
    method: method.toUpperCase(),
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) })
  })

const credentials: Readonly<Record<string, Record<string, string>>> = {
  bearer: { authorization: `Bearer ${businessKey}` },
  apiKey: { "x-api-key": businessKey },
  genApiKey: { "x-gen-api-key": businessKey },
  admin: { authorization: `Bearer ${adminKey}` }
}

const bodyOf = (operation: OpenApi.OpenAPISpecOperation): unknown => {
  const content = operation.requestBody?.content
  const media: object | undefined = content?.["application/json"] ?? content?.["multipart/form-data"]
  return media === undefined || !("example" in media) ? undefined : media.example
}

describe("/openapi.json", () => {
  it("is valid OpenAPI 3.1", async () => {
    const validator = new Validator()
    const result = await validator.validate(document as unknown as Record<string, unknown>)
    assert.deepEqual([result.valid, result.errors, document.openapi], [true, undefined, "3.1.0"])
  })

  it("describes every endpoint without internals", () => {
    const endpoints = new Set<string>()
    HttpApi.reflect(GatewayApi, {
      onGroup: () => undefined,
      onEndpoint: ({ endpoint, group }) => endpoints.add(`${group.identifier}.${endpoint.identifier}`)
    })
    const described = everyOperation().filter(({ method }) => method !== "head")
    assert.sameMembers(described.map(({ operation }) => operation.operationId), [...endpoints])
    for (const { operation } of described) {
      assert.isNotEmpty(operation.summary, operation.operationId)
      assert.isNotEmpty(Object.keys(operation.responses), operation.operationId)
    }
    for (const { description, name } of document.tags) assert.isNotEmpty(description, name)
    assert.notMatch(JSON.stringify(document), /x-effect|Defect|fiberId/)
  })

  it("shows streams as such", () => {
    const streams = everyOperation().filter(({ operation }) =>
      operation.responses[200]?.content?.["text/event-stream"] !== undefined
    )
    assert.sameMembers(streams.map(({ path }) => path), [
      "/v1/chat/completions",
      "/v1/responses",
      "/v1/completions",
      "/v1/images/generations",
      "/v1/images/edits",
      "/v1/audio/transcriptions",
      "/msgcompat/v1/messages",
      "/v1/messages",
      "/messages",
      "/v1beta/models/{model}:streamGenerateContent",
      "/v1/models/{model}:streamGenerateContent",
      "/admin/events",
      "/admin/dev/raw-samples/replay",
      "/admin/dev/raw-samples/capture"
    ])
  })

  it("lists the accepted credentials of every operation correctly", async () => {
    for (const { method, operation, path } of everyOperation()) {
      const { status } = await call(path, method, {}, takesBody(method) ? {} : undefined)
      const refused = status === 401
      // Login and sessions have no security scheme: credentials are in the body, and a session requires an origin.
      if (["admin-auth.login", "admin-session.create", "admin-session.end"].includes(operation.operationId)) continue
      assert.strictEqual(refused, operation.security.length > 0, `${method} ${path}: ${status}`)
      for (const scheme of operation.security.flatMap(Object.keys)) {
        assert.property(document.components.securitySchemes, scheme)
        const headers = credentials[scheme]
        if (headers === undefined || method === "delete") continue
        const known = await call(path, method, headers, takesBody(method) ? 7 : undefined)
        assert.notStrictEqual(known.status, 401, `${method} ${path} with ${scheme}`)
      }
    }
  })

  it("says which bodies may be absent", async () => {
    const optional: Array<string> = []
    for (const { method, operation, path } of everyOperation()) {
      if (operation.requestBody === undefined) continue
      const [requirement] = operation.security
      const headers = requirement === undefined ? {} : credentials[Object.keys(requirement)[0]!] ?? {}
      const response = await call(path, method, headers)
      await response.arrayBuffer()
      if (operation.requestBody.required) assert.isAtLeast(response.status, 400, `${method} ${path}`)
      else optional.push(operation.operationId)
    }
    assert.sameMembers(optional, [
      "admin-accounts.testAll",
      "admin-host.compare",
      "admin-host.sync",
      "admin-samples.capture",
      "admin-self-test.test",
      "admin-upstreams.testChanges"
    ])
  })

  it("has examples that the gateway accepts, and lists every status that it returns", async () => {
    for (const { method, operation, path } of everyOperation()) {
      // One ends every login, and the other is an endless stream.
      if (["admin-settings.password", "admin-events.stream"].includes(operation.operationId)) continue
      const [requirement] = operation.security
      const headers = requirement === undefined ? {} : credentials[Object.keys(requirement)[0]!] ?? {}
      const example = bodyOf(operation)
      assert.strictEqual(example === undefined, operation.requestBody === undefined, `${method} ${path}`)
      for (const body of [example, ...(example === undefined ? [] : [7])]) {
        const response = await call(path, method, headers, body)
        await response.arrayBuffer()
        const listed = operation.responses[response.status]
        assert.isDefined(listed, `${method} ${path} answered ${response.status}`)
        // This gateway has no credentials of a hosting platform for a sync.
        const accepts = example !== undefined && body === example && operation.operationId !== "admin-host.sync"
        if (accepts) assert.notInclude([400, 415, 422], response.status, `${method} ${path}`)
        const [type = ""] = response.headers.get("content-type")?.split(";") ?? []
        if (method !== "head") assert.property(listed?.content, type, `${method} ${path}`)
      }
    }
  })
})

describe.each(["/openapi.json", "/docs"])("%s", (path) => {
  const ask = async (headers: Record<string, string>) => {
    const { hostname, port } = new URL(gateway.url)
    const [response] = await once(get({ hostname, port, path, headers }), "response") as [IncomingMessage]
    return { status: response.statusCode, headers: response.headers, body: await buffer(response) }
  }

  it("is compressed as the client accepts, and not sent to a client with a current copy", async () => {
    const plain = await ask({})
    const gz = await ask({ "accept-encoding": "gzip" })
    const br = await ask({ "accept-encoding": "gzip, br" })
    assert.isUndefined(plain.headers["content-encoding"])
    assert.strictEqual(gz.headers["content-encoding"], "gzip")
    assert.strictEqual(br.headers["content-encoding"], "br")
    assert.deepStrictEqual(gunzipSync(gz.body), plain.body)
    assert.deepStrictEqual(brotliDecompressSync(br.body), plain.body)
    assert.isBelow(gz.body.length, plain.body.length / 2)
    for (const { headers } of [plain, gz, br]) {
      assert.strictEqual(headers["vary"], "Accept-Encoding")
      const accept = headers["content-encoding"] ?? "identity"
      const again = await ask({ "accept-encoding": accept, "if-none-match": headers["etag"] ?? "" })
      assert.deepInclude({ status: again.status, bytes: again.body.length }, { status: 304, bytes: 0 })
    }
  })
})

describe("every reply", () => {
  const replies: ReadonlyArray<readonly [string, string]> = [
    ["GET", "/"],
    ["GET", "/healthz"],
    ["GET", "/v1/models"],
    ["GET", "/docs"],
    ["GET", "/openapi.json"],
    ["GET", "/console/"],
    ["GET", "/console"],
    ["GET", "/console/assets/none"],
    ["GET", "/admin/config"],
    ["POST", "/v1/chat/completions"],
    ["POST", "/admin/login"],
    ["GET", "/none"],
    ["PUT", "/v1/models"],
    ["OPTIONS", "/v1/models"]
  ]

  it.each(replies)("to %s %s is kept out of frames and taken for what it says", async (method, path) => {
    const { headers } = await fetch(`${gateway.url}${path}`, { method, redirect: "manual" })
    assert.include(headers.get("content-security-policy"), "frame-ancestors 'none'")
    assert.strictEqual(headers.get("x-frame-options"), "DENY")
    assert.strictEqual(headers.get("x-content-type-options"), "nosniff")
  })
})

describe("/docs", () => {
  it("allows only its inline script", async () => {
    const response = await fetch(`${gateway.url}/docs`)
    const policy = response.headers.get("content-security-policy") ?? ""
    const scripts = [...(await response.text()).matchAll(/<script>([^]*?)<\/script>/g)].map(([, script]) => script!)
    assert.lengthOf(scripts, 1)
    const hash = createHash("sha256").update(scripts[0]!).digest("base64")
    assert.include(policy, `script-src 'sha256-${hash}';`)
    assert.include(policy, "default-src 'none'")
  })

  it("has no example that adds a publicly known key", () => {
    for (const path of ["/admin/config", "/admin/config/import", "/admin/import", "/admin/keys"]) {
      assert.notMatch(JSON.stringify(bodyOf(document.paths[path]!.post!)), /"keys?":/, path)
    }
  })

  it("has no example of an acceptable password", () => {
    const example = bodyOf(document.paths["/admin/settings/password"]!.post!)
    assert.deepStrictEqual(example, { current_password: "", new_password: "" })
  })

  it("shows the document and loads nothing from elsewhere", async () => {
    const response = await fetch(`${gateway.url}/docs`)
    const page = await response.text()
    assert.match(response.headers.get("content-type") ?? "", /^text\/html/)
    assert.include(page, "\"operationId\":\"chat.completions\"")
    assert.include(page, "SwaggerUIBundle")
    assert.notMatch(page, /<(?:script|link|img)[^>]+(?:src|href)\s*=/)
  })
})

describe("the typed admin client", () => {
  it("calls a running gateway, and returns values and the gateway's errors", () =>
    Effect.runPromise(
      Effect.gen(function*() {
        const admin = yield* makeAdminClient({ baseUrl: gateway.url, credential: adminKey })
        const added = yield* admin["admin-keys"].add({ payload: { key: "from the client/with a slash" } })
        assert.isTrue(added.success)
        const { keys } = yield* admin["admin-config"].get({ query: {} })
        assert.include(keys, "from the client/with a slash")
        yield* admin["admin-keys"].remove({ params: { key: "from the client/with a slash" } })

        const gone = yield* Effect.flip(admin["admin-keys"].remove({ params: { key: "from the client/with a slash" } }))
        assert.instanceOf(gone, GatewayError)
        const accounts = yield* admin["admin-accounts"].list({ query: { page_size: 5 } })
        assert.deepEqual([accounts.page_size, accounts.items.length], [5, accounts.total])

        const stranger = yield* makeAdminClient({ baseUrl: gateway.url, credential: "wrong" })
        const refused = yield* Effect.flip(stranger["admin-config"].get({ query: {} }))
        assert.deepEqual([refused instanceof GatewayError, refused._tag === "GatewayError" && refused.code], [
          true,
          "authentication_failed"
        ])
      }).pipe(Effect.provide(NodeHttpClient.layerUndici))
    ))
})
