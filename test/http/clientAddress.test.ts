/** The client of a request behind proxies, and what its records keep of addresses. */
import { assert, describe, it } from "@effect/vitest"
import { Option } from "effect"
import type { HttpServerRequest } from "effect/http"
import { clientAddress, isForwardedSecure } from "../../src/http/clientAddress.ts"
import { recordedHead } from "../../src/recordings/redactRound.ts"

const request = (peer: string | undefined, headers: Record<string, string> = {}) =>
  ({
    method: "POST",
    originalUrl: "/v1/chat/completions",
    headers,
    remoteAddress: Option.fromUndefinedOr(peer)
  }) as unknown as HttpServerRequest.HttpServerRequest

const server = { trusted_proxies: ["10.0.0.0/8", "2001:db8:ffff::/48", "192.0.2.1"] }
const nobody = { trusted_proxies: [] }

const client = (
  peer: string,
  forwarded: string,
  trusted: { readonly trusted_proxies: ReadonlyArray<string> } = server
) => clientAddress(request(peer, { "x-forwarded-for": forwarded }), trusted)

describe("the client's address", () => {
  it("is the peer's unless the peer is a trusted proxy", () => {
    assert.strictEqual(client("203.0.113.9", "198.51.100.1"), "203.0.113.9")
    assert.strictEqual(client("10.0.0.1", "198.51.100.1", nobody), "10.0.0.1")
    assert.strictEqual(clientAddress(request("10.0.0.1"), server), "10.0.0.1")
    assert.strictEqual(clientAddress(request("::ffff:203.0.113.9"), server), "203.0.113.9")
    assert.strictEqual(clientAddress(request(undefined, { "x-forwarded-for": "198.51.100.1" }), server), "unknown")
  })

  it("is the last entry that is no trusted proxy", () => {
    assert.strictEqual(client("10.0.0.1", "198.51.100.1"), "198.51.100.1")
    assert.strictEqual(client("::ffff:10.0.0.1", "198.51.100.7, 203.0.113.5, 10.9.9.9,192.0.2.1"), "203.0.113.5")
    assert.strictEqual(client("2001:db8:ffff::1", "2001:DB8:1:0::7"), "2001:db8:1::7")
    assert.strictEqual(client("10.0.0.1", "10.0.0.2, 10.0.0.3"), "10.0.0.2")
    assert.strictEqual(client("10.0.0.1", "198.51.100.1:4711"), "198.51.100.1")
    assert.strictEqual(client("10.0.0.1", "[2001:db8::7]:4711"), "2001:db8::7")
  })

  it("is the last proxy where an entry is no address", () => {
    assert.strictEqual(client("10.0.0.1", "198.51.100.1, unknown"), "10.0.0.1")
    assert.strictEqual(client("10.0.0.1", "198.51.100.1, _hidden, 10.0.0.2"), "10.0.0.2")
    assert.strictEqual(client("10.0.0.1", "198.51.100.1, "), "10.0.0.1")
    assert.strictEqual(client("10.0.0.1", ""), "10.0.0.1")
  })
})

describe("the scheme of a trusted proxy", () => {
  const isSecure = (peer: string, scheme: string) =>
    isForwardedSecure(request(peer, { "x-forwarded-proto": scheme }), server)

  it("counts, and that of another peer does not", () => {
    assert.isTrue(isSecure("10.0.0.1", "https"))
    assert.isTrue(isSecure("10.0.0.1", "HTTPS, http"))
    assert.isFalse(isSecure("10.0.0.1", "http"))
    assert.isFalse(isSecure("203.0.113.9", "https"))
    assert.isFalse(isForwardedSecure(request("10.0.0.1"), server))
  })
})

describe("the headers of a record", () => {
  const headers = {
    "user-agent": "agent 203.0.113.7",
    "x-forwarded-for": "203.0.113.7, 2001:db8:1:2::3,unknown",
    "x-real-ip": "203.0.113.7",
    forwarded: "For=203.0.113.7;proto=https;by=\"[2001:db8:1:2::3]:80\", for=_hidden"
  }
  const kept = (privacy: "full" | "prefix" | "none") =>
    recordedHead(request("10.0.0.1", headers), { client_address: privacy, sessions: "full" }).headers

  it("have addresses as far as privacy.client_address keeps them", () => {
    assert.deepStrictEqual(kept("full"), headers)
    assert.deepStrictEqual(kept("prefix"), {
      "user-agent": "agent 203.0.113.7",
      "x-forwarded-for": "203.0.113.0/24, 2001:db8:1::/48, ***",
      "x-real-ip": "203.0.113.0/24",
      forwarded: "For=\"203.0.113.0/24\";proto=https;by=\"2001:db8:1::/48\", for=\"***\""
    })
    assert.deepStrictEqual(kept("none"), {
      "user-agent": "agent 203.0.113.7",
      "x-forwarded-for": "***, ***, ***",
      "x-real-ip": "***",
      forwarded: "For=\"***\";proto=https;by=\"***\", for=\"***\""
    })
  })
})
