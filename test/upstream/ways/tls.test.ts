import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { Deadlines } from "../../../src/config/clock/Deadlines.ts"
import type { Fault } from "../../../src/config/ConfigError.ts"
import { ConfigStore } from "../../../src/config/ConfigStore.ts"
import { readTls, type TlsSettings } from "../../../src/config/tls.ts"
import { layerUndici } from "../../../src/upstream/transports/undici.ts"
import type { Recorder } from "../../../src/upstream/Upstream.ts"
import { modelList } from "../../support/openaiServer.ts"
import { complete, fixedToken, request } from "../session/support.ts"
import { authority, certificate, driverOf, modelServer, secureServer, type WaySettings } from "./support.ts"

const tlsOf = (settings: TlsSettings) => {
  const faults: Array<Fault> = []
  const tls = readTls(settings, "tls", faults)
  assert.deepStrictEqual(faults, [])
  return tls
}

const client = authority.sign("DNS:client")

const transport = Layer.provide(layerUndici, [Deadlines.layer, ConfigStore.layerJson()])

const onClient = <A, E, R>(test: Effect.Effect<A, E, R>) =>
  Effect.scoped(Effect.provide(test, Layer.provideMerge(transport, TestClock.layer({ warningDelay: "1 hour" }))))

const list = (baseUrl: string, settings: WaySettings) =>
  Effect.flatMap(driverOf(baseUrl, settings), (driver) => driver.capabilities.listModels!("key"))

/** The code of the failure, or what was listed. */
const codeOf = (baseUrl: string, settings: TlsSettings | undefined) =>
  Effect.match(list(baseUrl, { tls: settings === undefined ? undefined : tlsOf(settings) }), {
    onSuccess: (models) => models.join(),
    onFailure: ({ cause }) => cause?.code
  })

describe("an upstream with TLS of its own", () => {
  it.effect("is trusted by its own roots alone", () =>
    onClient(Effect.gen(function*() {
      const { port, server } = yield* secureServer()
      server.list(() => modelList("m"))
      const baseUrl = `https://127.0.0.1:${port}/v1`
      assert.strictEqual(yield* codeOf(baseUrl, undefined), "UNABLE_TO_VERIFY_LEAF_SIGNATURE")
      assert.strictEqual(yield* codeOf(baseUrl, { ca: authority.cert }), "m")
      const other = authority.sign("DNS:other")
      assert.strictEqual(yield* codeOf(baseUrl, { ca: other.cert }), "UNABLE_TO_VERIFY_LEAF_SIGNATURE")
      // Connections with other roots are not shared.
      assert.strictEqual(yield* codeOf(baseUrl, undefined), "UNABLE_TO_VERIFY_LEAF_SIGNATURE")
    })))

  it.effect("is known by its server name", () =>
    onClient(Effect.gen(function*() {
      const { port, server } = yield* secureServer(authority.sign("DNS:inner.test"))
      server.list(() => modelList("m"))
      const baseUrl = `https://127.0.0.1:${port}/v1`
      assert.strictEqual(yield* codeOf(baseUrl, { ca: authority.cert }), "ERR_TLS_CERT_ALTNAME_INVALID")
      assert.strictEqual(yield* codeOf(baseUrl, { ca: authority.cert, server_name: "inner.test" }), "m")
      assert.strictEqual(server.lists[0]?.headers.host, `127.0.0.1:${port}`)
    })))

  it.effect("gets the client's certificate", () =>
    onClient(Effect.gen(function*() {
      const { clients, port, server } = yield* secureServer({
        ...certificate,
        ca: authority.cert,
        requestCert: true,
        rejectUnauthorized: true
      })
      server.list(() => modelList("m"))
      const baseUrl = `https://127.0.0.1:${port}/v1`
      assert.strictEqual(yield* codeOf(baseUrl, { ca: authority.cert, ...client }), "m")
      assert.deepStrictEqual(clients, ["signed"])
      assert.notStrictEqual(yield* codeOf(baseUrl, { ca: authority.cert }), "m")
    })))
})

describe("the headers of an upstream", () => {
  it.effect("go with every request, and replace neither an account's credential nor the upstream's", () =>
    onClient(Effect.gen(function*() {
      const server = yield* modelServer
      server.list(() => modelList("m"))
      const headers = [
        { name: "X-Title", value: Redacted.make("gateway") },
        { name: "Authorization", value: Redacted.make("Bearer the upstream's") }
      ]
      const driver = yield* driverOf(server.baseUrl, { headers })
      yield* driver.capabilities.listModels!("key")
      yield* driver.verify(undefined)
      yield* complete(driver, request("Hi", { credential: fixedToken("key") }))
      yield* complete(driver, request("Hi", { credential: fixedToken("none") }))
      const seen = [...server.lists, ...server.requests].map(({ headers }) => headers)
      assert.deepStrictEqual(
        seen.map(({ authorization }) => authorization),
        ["Bearer key", "Bearer the upstream's", "Bearer key", "Bearer the upstream's"]
      )
      for (const each of seen) assert.strictEqual(each["x-title"], "gateway")
    })))

  it.effect("and passwords of proxies are what recordings leave out", () =>
    onClient(Effect.gen(function*() {
      const server = yield* modelServer
      const settings = {
        headers: [{ name: "X-Title", value: Redacted.make("the-header") }],
        proxy: Redacted.make("http://user:of%20upstream@127.0.0.1:1")
      }
      const driver = yield* driverOf(server.baseUrl, settings, Redacted.make("direct"))
      const recorded: Array<string> = []
      const recorder: Recorder = {
        round: ({ secrets = [] }) => {
          recorded.push(...secrets.map(Redacted.value))
          return { opened: () => {}, bytes: () => {}, closed: () => {} }
        }
      }
      yield* complete(driver, request("Hi", { recorder }))
      assert.includeMembers(recorded, ["the-header", "of upstream", Buffer.from("user:of upstream").toString("base64")])
      assert.deepStrictEqual(driver.secrets.map(Redacted.value), recorded)
    })))
})
