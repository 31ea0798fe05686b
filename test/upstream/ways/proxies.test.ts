import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Fiber, Layer, Logger, Redacted, References } from "effect"
import { TestClock } from "effect/testing"
import { getCACertificates, setDefaultCACertificates } from "node:tls"
import { afterAll, beforeAll } from "vitest"
import { Deadlines } from "../../../src/config/clock/Deadlines.ts"
import { ConfigStore } from "../../../src/config/ConfigStore.ts"
import { readTls } from "../../../src/config/tls.ts"
import type { UpstreamFailure } from "../../../src/domain/UpstreamFailure.ts"
import { upstreamFault } from "../../../src/placement/UpstreamCooling.ts"
import { driverWithConnection } from "../../../src/upstream/connection.ts"
import { Exchanges } from "../../../src/upstream/Exchange.ts"
import { makeSessionDriver } from "../../../src/upstream/session/driver.ts"
import { layerUndici } from "../../../src/upstream/transports/undici.ts"
import { makeAuthority } from "../../support/certificates.ts"
import { modelList } from "../../support/openaiServer.ts"
import type { ProxyKind, ProxyServer } from "../../support/proxyServers.ts"
import { complete, facts, fixedToken, referenceServer, request, timeLimits } from "../session/support.ts"
import { authority, driverOf, modelServer, proxyServer, secureServer, type WaySettings } from "./support.ts"

const kinds: ReadonlyArray<ProxyKind> = ["http", "https", "socks5"]
/** With characters that addresses must encode. */
const credentials = { username: "us:er@corp", password: "p@ss/wörd%2F" }
const tls = readTls({ ca: authority.cert }, "tls", [])

/** https proxies are found by the system's roots. */
const roots = getCACertificates("default")
beforeAll(() => setDefaultCACertificates([...roots, authority.cert]))
afterAll(() => setDefaultCACertificates(roots))

/** The client over an environment, with a clock of its own. */
const onClient = <A, E, R>(test: Effect.Effect<A, E, R>, environment: { readonly [name: string]: string } = {}) => {
  const client = Layer.provide(layerUndici, [
    Deadlines.layer,
    ConfigStore.layerJson(),
    ConfigProvider.layer(ConfigProvider.fromEnvRecord(environment))
  ])
  return Effect.scoped(Effect.provide(test, Layer.provideMerge(client, TestClock.layer({ warningDelay: "1 hour" }))))
}

type Owner = "account" | "upstream" | "environment"

const upstreams = ["http", "https"] as const

/** A model server that only proxies find: `baseUrl` has a name that nothing else resolves. */
const hiddenServer = (protocol: typeof upstreams[number]) =>
  Effect.gen(function*() {
    if (protocol === "https") {
      const { port, server } = yield* secureServer()
      return { server, baseUrl: `https://upstream.test:${port}/v1`, authority: `upstream.test:${port}` }
    }
    const server = yield* modelServer
    const { port } = new URL(server.baseUrl)
    return { server, baseUrl: `http://upstream.test:${port}/v1`, authority: `upstream.test:${port}` }
  })

/** Calls the server by a proxy of an account, of the upstream or of the environment. */
const driverBy = (owner: Owner, baseUrl: string, proxy: string, settings: WaySettings = {}) =>
  owner === "account"
    ? driverOf(baseUrl, { ...settings, proxy: Redacted.make("http://127.0.0.1:1") }, Redacted.make(proxy))
    : driverOf(baseUrl, owner === "upstream" ? { ...settings, proxy: Redacted.make(proxy) } : settings)

const environmentOf = (owner: Owner, proxy: string): { readonly [name: string]: string } =>
  owner === "environment" ? { all_proxy: proxy } : { all_proxy: "http://127.0.0.1:1" }

const failureOf = (driver: { readonly verify: (token: string) => Effect.Effect<void, UpstreamFailure> }) =>
  Effect.flip(driver.verify("key-of-the-account"))

describe.each(kinds)("by a proxy of the kind %s", (kind) => {
  describe.each([undefined, credentials])("with the credentials %j", (credentials) => {
    describe.each(upstreams)("to an %s upstream", (protocol) => {
      it.effect.each<Owner>(["account", "upstream", "environment"])(
        "of the %s, all calls go",
        (owner) =>
          Effect.gen(function*() {
            const proxy = yield* proxyServer({ kind, credentials })
            yield* onClient(
              Effect.gen(function*() {
                const { authority, baseUrl, server } = yield* hiddenServer(protocol)
                server.list(() => modelList("m"))
                const driver = yield* driverBy(owner, baseUrl, proxy.url, protocol === "https" ? { tls } : {})
                const outcome = yield* complete(driver, request("Hi", { credential: fixedToken("key") }))
                assert.strictEqual(outcome.text, "Hello", JSON.stringify(outcome.failure?.cause))
                assert.deepStrictEqual(yield* driver.capabilities.listModels!("key"), ["m"])
                const isForwarded = protocol === "http" && kind !== "socks5"
                // A connection serves again if its reply had ended when the driver left it.
                assert.deepStrictEqual(
                  [...new Set(proxy.asked)],
                  isForwarded
                    ? [`POST ${baseUrl}/chat/completions`, `GET ${baseUrl}/models`]
                    : [`tunnel ${authority}`]
                )
                for (const { headers } of [...server.requests, ...server.lists]) {
                  assert.notProperty(headers, "proxy-authorization")
                  assert.strictEqual(headers.host, authority)
                }
              }),
              environmentOf(owner, proxy.url)
            )
          })
      )
    })
  })

  it.effect("wrong credentials are the proxy's failure, whose address has no password", () =>
    Effect.gen(function*() {
      const proxy = yield* proxyServer({ kind, credentials })
      const wrong = proxy.url.replace("p%40ss", "secret")
      for (const owner of ["account", "upstream"] as const) {
        for (const protocol of upstreams) {
          const { baseUrl } = yield* hiddenServer(protocol)
          const failure = yield* onClient(Effect.flatMap(driverBy(owner, baseUrl, wrong), failureOf))
          const status = kind === "socks5" ? {} : { status: 407 }
          assert.deepStrictEqual(failure.cause, {
            code: "UND_ERR_PRX_AUTH",
            address: new URL(baseUrl).origin,
            ...status,
            proxy: { of: owner, address: proxy.address }
          })
          assert.notInclude(JSON.stringify([failure, facts(failure)]), "secret")
        }
      }
    }))

  it.effect("a failing proxy of an account takes out the account, any other cools the upstream", () =>
    Effect.gen(function*() {
      const proxy = yield* proxyServer({ kind })
      yield* Effect.promise(proxy.stop)
      for (const protocol of upstreams) {
        const { baseUrl } = yield* hiddenServer(protocol)
        for (const owner of ["account", "upstream", "environment"] as const) {
          const failure = yield* onClient(
            Effect.flatMap(driverBy(owner, baseUrl, proxy.url), failureOf),
            environmentOf(owner, proxy.url)
          )
          assert.deepStrictEqual(failure.cause, {
            code: "UND_ERR_PRX_CONN",
            address: new URL(baseUrl).origin,
            proxy: { of: owner, address: proxy.address, code: "ECONNREFUSED" }
          })
          const { class: failureClass, error, health, next } = facts(failure)
          assert.deepStrictEqual(
            [failureClass, next, health, upstreamFault(failure, failureClass)],
            owner === "account"
              ? ["proxy_failed", "account", "refused_login", undefined]
              : ["unreachable", "target", "none", "connection"]
          )
          assert.strictEqual(
            error.message,
            `The proxy for this upstream failed: there is no connection to the proxy.${
              owner === "account" ? "" : " Retry later, or ask the gateway's operator."
            }`
          )
        }
      }
    }))

  it.effect("a proxy that refuses, hangs up or says nothing fails as such", () =>
    Effect.gen(function*() {
      const { baseUrl } = yield* hiddenServer("https")
      const codeWith = (proxy: ProxyServer) =>
        onClient(
          Effect.gen(function*() {
            const driver = yield* driverBy("upstream", baseUrl, proxy.url, { tls })
            const failing = yield* Effect.forkChild(failureOf(driver))
            return { failing, failure: Effect.map(Fiber.join(failing), ({ cause, kind }) => [kind, cause?.code]) }
          }).pipe(
            Effect.flatMap(({ failing, failure }) =>
              Effect.gen(function*() {
                // The proxy has taken the request when the limit passes.
                while (proxy.asked.length === 0) yield* Effect.promise(() => new Promise(setImmediate))
                while (failing.pollUnsafe() === undefined) {
                  yield* Effect.promise(() => new Promise(setImmediate))
                  yield* TestClock.adjust("100 millis")
                }
                return yield* failure
              })
            )
          )
        )
      const refused = yield* proxyServer({ kind, refuse: kind === "socks5" ? 2 : 403 })
      assert.deepStrictEqual(yield* codeWith(refused), ["transport", "UND_ERR_PRX_REFUSED"])
      const closing = yield* proxyServer({ kind, refuse: "close" })
      assert.deepStrictEqual(yield* codeWith(closing), ["transport", "UND_ERR_PRX_CONN"])
      const silent = yield* proxyServer({ kind, refuse: "hang" })
      assert.deepStrictEqual(yield* codeWith(silent), ["transport", "UND_ERR_PRX_TIMEOUT"])
    }))

  it.effect("a long head of a reply passes", () =>
    Effect.gen(function*() {
      const proxy = yield* proxyServer({ kind })
      const { baseUrl, server } = yield* hiddenServer("http")
      server.list(() => ({ ...modelList("m"), headers: { "x-pad": "y".repeat(60 * 1024) } }))
      const driver = driverBy("upstream", baseUrl, proxy.url)
      const models = yield* onClient(Effect.flatMap(driver, (driver) => driver.capabilities.listModels!("key")))
      assert.deepStrictEqual(models, ["m"])
    }))

  it.effect("the session driver logs in by it", () =>
    Effect.gen(function*() {
      const proxy = yield* proxyServer({ kind, credentials })
      const { url } = yield* referenceServer({ accounts: [{ email: "a@x.org", password: "p" }] })
      yield* onClient(Effect.gen(function*() {
        const exchanges = yield* Exchanges
        const upstream = {
          base_url: url,
          headers: [{ name: "X-Title", value: Redacted.make("gateway") }],
          credential_header: undefined,
          proxy: Redacted.make("direct"),
          tls: undefined,
          timeouts: { connect: 5, first_byte: 10, silence: 10 }
        }
        const driver = driverWithConnection(exchanges, upstream, (exchanges) =>
          makeSessionDriver(exchanges, { baseUrl: url, furtherModels: [], limits: timeLimits }))
        const own = driver.capabilities.withProxy!(Redacted.make(proxy.url))
        const token = yield* own.capabilities.login!({ email: "a@x.org", mobile: undefined, password: "p" })
        yield* own.verify(token)
        const calls = proxy.asked.length
        yield* driver.verify(token)
        assert.isAtLeast(calls, 1)
        assert.lengthOf(proxy.asked, calls)
        for (const headers of proxy.headers) {
          assert.strictEqual(headers["x-title"], "gateway")
        }
      }))
    }))
})

describe("operators", () => {
  it.effect("read each failure of a proxy in the log, without its password", () => {
    const lines: Array<string> = []
    const logger = Logger.make(({ fiber, message }) => {
      lines.push(JSON.stringify([message, fiber.getRef(References.CurrentLogAnnotations)]))
    })
    return Effect.gen(function*() {
      const proxy = yield* proxyServer({ kind: "http", credentials })
      const driver = driverBy("account", "https://upstream.test/v1", proxy.url.replace("p%40ss", "secret"))
      yield* onClient(Effect.flatMap(driver, failureOf))
      assert.lengthOf(lines, 1)
      const cause = {
        code: "UND_ERR_PRX_AUTH",
        status: 407,
        proxy: { of: "account", address: proxy.address },
        address: "https://upstream.test"
      }
      assert.deepStrictEqual(JSON.parse(lines[0]!), [["The proxy of an upstream failed"], { cause }])
    }).pipe(Effect.provide(Logger.layer([logger])))
  })
})

describe("an https proxy", () => {
  it.effect("that the system does not trust fails as such", () =>
    Effect.gen(function*() {
      const proxy = yield* proxyServer({ kind: "https", certificate: makeAuthority().sign("IP:127.0.0.1") })
      for (const protocol of upstreams) {
        const { baseUrl } = yield* hiddenServer(protocol)
        // The roots of the upstream are for the upstream alone.
        const driver = driverBy("upstream", baseUrl, proxy.url, protocol === "https" ? { tls } : {})
        const { cause, kind } = yield* onClient(Effect.flatMap(driver, failureOf))
        const { code, proxy: failed } = cause ?? {}
        assert.deepStrictEqual([kind, code, failed?.code], [
          "transport",
          "UND_ERR_PRX_TLS",
          "UNABLE_TO_VERIFY_LEAF_SIGNATURE"
        ])
      }
    }))
})

describe("a SOCKS5 proxy", () => {
  it.effect.each([
    ["[2001:db8::a:1]", "20010db80000000000000000000a0001"],
    ["[::ffff:10.1.2.3]", "00000000000000000000ffff0a010203"],
    ["10.1.2.3", "10.1.2.3"]
  ])("connects to the address %s", ([host, written]) =>
    Effect.gen(function*() {
      const proxy = yield* proxyServer({ kind: "socks5" })
      const server = yield* modelServer
      server.list(() => modelList("m"))
      const { port } = new URL(server.baseUrl)
      const driver = driverBy("upstream", `http://${host}:${port}/v1`, proxy.url)
      assert.deepStrictEqual(
        yield* onClient(Effect.flatMap(driver, (driver) => driver.capabilities.listModels!("key"))),
        ["m"]
      )
      assert.deepStrictEqual(proxy.asked, [`tunnel ${written}:${port}`])
    }))
})

describe("the environment", () => {
  it.effect("is not asked for loopback addresses, exceptions, and an upstream that goes directly", () =>
    Effect.gen(function*() {
      const proxy = yield* proxyServer({ kind: "http" })
      const server = yield* modelServer
      const environment = { http_proxy: proxy.url, HTTP_PROXY: "http://127.0.0.1:1", no_proxy: "skipped.test" }
      server.list(() => modelList("m"))
      const list = (baseUrl: string, settings: WaySettings = {}) =>
        onClient(
          Effect.flatMap(driverOf(baseUrl, settings), (driver) => driver.capabilities.listModels!("key")),
          environment
        )
      assert.deepStrictEqual(yield* list(server.baseUrl), ["m"])
      assert.deepStrictEqual(proxy.asked, [])
      const { port } = new URL(server.baseUrl)
      yield* list(`http://upstream.test:${port}/v1`)
      assert.deepStrictEqual(proxy.asked, [`GET http://upstream.test:${port}/v1/models`])
      for (const settings of [{}, { proxy: Redacted.make("direct") }]) {
        const name = settings.proxy === undefined ? "api.skipped.test" : "upstream.test"
        const failed = yield* Effect.flip(list(`http://${name}:${port}/v1`, settings))
        assert.match(JSON.stringify(failed), /"(?:ENOTFOUND|EAI_AGAIN)"/)
      }
      assert.lengthOf(proxy.asked, 1)
    }))
})
