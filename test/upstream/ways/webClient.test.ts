import { assert, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer } from "effect"
import { HttpClient } from "effect/http"
import { getCACertificates, setDefaultCACertificates } from "node:tls"
import { afterAll, beforeAll } from "vitest"
import { layerWebClient } from "../../../src/upstream/transports/webClient.ts"
import { json, modelList } from "../../support/openaiServer.ts"
import { authority, modelServer, proxyServer, secureServer } from "./support.ts"

const roots = getCACertificates("default")
beforeAll(() => setDefaultCACertificates([...roots, authority.cert]))
afterAll(() => setDefaultCACertificates(roots))

const get = (url: string, environment: { readonly [name: string]: string }) =>
  HttpClient.get(url).pipe(
    Effect.flatMap((response) => Effect.map(response.text, (text) => [response.status, text] as const)),
    Effect.provide(Layer.provide(layerWebClient, ConfigProvider.layer(ConfigProvider.fromEnvRecord(environment))))
  )

it.effect("calls to other servers go through the environment's proxies and follow no redirect", () =>
  Effect.gen(function*() {
    const credentials = { username: "user", password: "p@ss" }
    for (const kind of ["http", "https", "socks5"] as const) {
      const proxy = yield* proxyServer({ kind, credentials })
      const { port, server } = yield* secureServer()
      server.list(() => json(302, modelList("m"), { location: "http://elsewhere.test/" }))
      const [status] = yield* get(`https://upstream.test:${port}/v1/models`, { HTTPS_PROXY: proxy.url })
      assert.strictEqual(status, 302)
      assert.deepStrictEqual(proxy.asked, [`tunnel upstream.test:${port}`])
    }
  }))

it.effect("calls to the machine itself go directly, and by no proxy that cannot be used", () =>
  Effect.gen(function*() {
    const server = yield* modelServer
    server.list(() => modelList("m"))
    const [status] = yield* get(`${server.baseUrl}/models`, { http_proxy: "http://127.0.0.1:1" })
    assert.strictEqual(status, 200)
    const { port } = new URL(server.baseUrl)
    yield* Effect.flip(get(`http://upstream.test:${port}/v1/models`, { http_proxy: "socks4://127.0.0.1:1" }))
    assert.lengthOf(server.lists, 1)
  }))
