import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect } from "effect"
import * as fc from "fast-check"
import {
  checkProxyVariables,
  chooseProxy,
  isProxySetting,
  parseProxy,
  proxyVariables
} from "../../src/config/proxies.ts"

/** An address as thirty-two bits. */
const bitsOf = (address: string): bigint =>
  address.split(".").reduce((bits, part) => (bits << 8n) + BigInt(Number(part)), 0n)

interface Entry {
  readonly kind: "all" | "name" | "dotted" | "starred" | "address" | "range"
  readonly text: string
  readonly bits: number
  readonly port: number | undefined
}

/** Whether an entry of `no_proxy` excepts a host, said as plainly as possible. */
const excepts = ({ bits, kind, port: own, text }: Entry, hostname: string, port: number): boolean => {
  const isAddress = /^[\d.]+$/.test(hostname)
  if (own !== undefined && own !== port) return false
  switch (kind) {
    case "all":
      return true
    case "address":
      return hostname === text
    case "range": {
      const rest = BigInt(32 - bits)
      return isAddress && bitsOf(hostname) >> rest === bitsOf(text) >> rest
    }
    case "starred":
      return hostname.endsWith(`.${text}`)
    default:
      return hostname === text || hostname.endsWith(`.${text}`)
  }
}

const written = ({ bits, kind, port, text }: Entry): string => {
  const host = {
    all: "*",
    name: text,
    dotted: `.${text}`,
    starred: `*.${text}`,
    address: text,
    range: `${text}/${bits}`
  }
  return host[kind] + (port === undefined ? "" : `:${port}`)
}

const label = fc.constantFrom("a", "b", "corp", "xcorp")
const name = fc.array(label, { minLength: 1, maxLength: 3 }).map((labels) => labels.join("."))
const address = fc.tuple(...[1, 2, 3, 4].map(() => fc.constantFrom(1, 10, 128, 192))).map((parts) => parts.join("."))
const port = fc.constantFrom(80, 443, 8080)
const entry: fc.Arbitrary<Entry> = fc.oneof(
  fc.record({
    kind: fc.constantFrom("name", "dotted", "starred"),
    text: name,
    bits: fc.constant(0),
    port: fc.option(port, { nil: undefined })
  }),
  fc.record({
    kind: fc.constant("address" as const),
    text: address,
    bits: fc.constant(0),
    port: fc.option(port, { nil: undefined })
  }),
  fc.record({ kind: fc.constant("range" as const), text: address, bits: fc.nat(32), port: fc.constant(undefined) }),
  fc.record({
    kind: fc.constant("all" as const),
    text: fc.constant(""),
    bits: fc.constant(0),
    port: fc.option(port, { nil: undefined })
  })
)
const variable = (text: string) => fc.constantFrom("", text)
const none = { http: "", https: "", all: "", no: "" }

describe("the proxy on a way", () => {
  it("is the account's, else the upstream's, else the environment's by scheme and exceptions", () => {
    const settings = fc.record({
      account: fc.constantFrom(undefined, undefined, "direct", "http://account:1"),
      upstream: fc.constantFrom(undefined, undefined, undefined, "direct", "socks5://upstream:2"),
      http: variable("http://http:3"),
      https: variable("https://https:4"),
      all: variable("socks5h://all:5"),
      no: fc.array(entry, { maxLength: 3 }),
      separator: fc.constantFrom(",", ", ", " "),
      protocol: fc.constantFrom("http", "https"),
      host: fc.oneof(name, address, fc.constantFrom("localhost", "x.localhost", "127.8.9.1", "[::1]")),
      port
    })
    fc.assert(
      fc.property(settings, ({ account, all, host, http, https, no, port, protocol, separator, upstream }) => {
        const environment = { http, https, all, no: no.map(written).join(separator) }
        const chosen = chooseProxy({ account, upstream, environment }, `${protocol}://${host}:${port}/v1`)
        const isLoopback = /^(?:.*\.)?localhost$|^127\.|^\[::1\]$/.test(host)
        const own = account ?? upstream
        const found = own ?? (
          isLoopback || no.some((each) => excepts(each, host, port)) ? "" : (protocol === "http" ? http : https) || all
        )
        if (found === "" || found === "direct") return assert.isUndefined(chosen)
        assert.strictEqual(chosen?.proxy?.address, found)
        assert.strictEqual(
          chosen?.owner,
          account !== undefined ? "account" : upstream !== undefined ? "upstream" : "environment"
        )
      })
    )
  })

  it.each([
    ["[2001:db8::1]", "2001:db8::1", true],
    ["[2001:db8::1]", "[2001:0db8:0::1]:443", true],
    ["[2001:db8::1]", "[2001:db8::1]:80", false],
    ["[2001:db8::1]", "2001:db8::/32", true],
    ["[2001:db9::1]", "2001:db8::/32", false],
    ["API.Example.com.", "EXAMPLE.com", true],
    ["api.example.com", "example.com.", true],
    ["example.com", "*.example.com", false],
    ["10.0.0.1", "10.0.0.0/33", false],
    ["10.0.0.1", "10.0.0.0/8/8", false],
    ["10.0.0.1", "10.0.0.0/", false],
    ["xexample.com", "example.com", false],
    ["example.com", " , ,", false]
  ])("to %s is excepted by %j: %s", (host, no, isExcepted) => {
    const environment = { ...none, https: "proxy.corp:3128", no }
    const chosen = chooseProxy({ account: undefined, upstream: undefined, environment }, `https://${host}`)
    assert.strictEqual(chosen?.proxy?.address, isExcepted ? undefined : "http://proxy.corp:3128")
  })

  it("that cannot be used leaves no direct way", () => {
    const environment = { ...none, all: "socks4://old:1080" }
    const settings = { account: undefined, upstream: undefined, environment }
    assert.deepStrictEqual(chooseProxy(settings, "http://x"), { proxy: undefined, owner: "environment" })
    assert.deepStrictEqual(chooseProxy({ ...settings, upstream: "nonsense" }, "http://x"), {
      proxy: undefined,
      owner: "upstream"
    })
  })

  it("is read with decoded credentials, which its address is without", () => {
    assert.deepStrictEqual(parseProxy("socks5h://us%3Aer:p%40ss@[::1]"), {
      protocol: "socks5",
      hostname: "::1",
      port: 1080,
      username: "us:er",
      password: "p@ss",
      address: "socks5h://[::1]"
    })
    const long = "x".repeat(256)
    const wrong = [
      "",
      "proxy.corp:3128",
      "ftp://x",
      "http://x/path",
      "http://x?q",
      "http://%zz@x",
      `socks5://u:${long}@x`
    ]
    for (const text of wrong) assert.isFalse(isProxySetting(text), text)
    for (const text of ["direct", "http://x", "https://x:1/", `http://u:${long}@x`]) assert.isTrue(isProxySetting(text))
  })

  it.effect("has variables in lower case before those in upper case, and blank ones are unset", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* proxyVariables, { http: "one", https: "four", all: "", no: "five" })
    }).pipe(Effect.provide(ConfigProvider.layer(ConfigProvider.fromEnvRecord({
      http_proxy: "one",
      HTTP_PROXY: "two",
      https_proxy: " ",
      HTTPS_PROXY: "four",
      NO_PROXY: "five"
    })))))

  it.effect("ends the start where a variable names none, without its value", () =>
    Effect.gen(function*() {
      const { message } = yield* Effect.flip(checkProxyVariables)
      assert.strictEqual(message, "all_proxy must be an http, https, socks5 or socks5h address")
    }).pipe(Effect.provide(ConfigProvider.layer(ConfigProvider.fromEnvRecord({
      http_proxy: "http://user:password@proxy.corp:3128",
      ALL_PROXY: "socks4://user:password@proxy.corp"
    })))))
})
