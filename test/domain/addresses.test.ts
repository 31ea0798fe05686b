import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { BlockList, isIP } from "node:net"
import { formatAddress, isInRange, parseAddress, parseRange, shownAddress } from "../../src/domain/addresses.ts"

const familyOf = (text: string) => isIP(text) === 4 ? "ipv4" : "ipv6"

/** Addresses with few distinct bytes, so that many share a prefix. */
const byte = fc.constantFrom(0, 1, 127, 128, 255)
const v4 = fc.array(byte, { minLength: 4, maxLength: 4 }).map((parts) => parts.join("."))
const group = fc.constantFrom("0", "1", "db8", "2001", "8000", "ffff")
const v6 = fc.array(group, { minLength: 8, maxLength: 8 }).map((parts) => parts.join(":"))
const isMapped = (text: string) => text.startsWith("0:0:0:0:0:ffff:")

describe("an address", () => {
  it("has the canonical text that URLs have", () => {
    fc.assert(fc.property(v6, (text) => {
      if (isMapped(text)) return
      assert.strictEqual(`[${formatAddress(parseAddress(text)!)}]`, new URL(`http://[${text}]`).hostname)
    }))
    assert.strictEqual(formatAddress(parseAddress("192.0.2.1")!), "192.0.2.1")
    assert.strictEqual(formatAddress(parseAddress("2001:DB8:0::192.0.2.1")!), "2001:db8::c000:201")
  })

  it("is an IPv4 address if it is one mapped into IPv6, and has no zone", () => {
    for (const text of ["::ffff:192.0.2.1", "::FFFF:c000:201", "0:0:0:0:0:ffff:192.0.2.1"]) {
      assert.strictEqual(formatAddress(parseAddress(text)!), "192.0.2.1")
    }
    assert.strictEqual(formatAddress(parseAddress("fe80::1%eth0")!), "fe80::1")
  })

  it("is nothing that the system does not take for one", () => {
    const word = fc.constantFrom("1", "256", "01", "ffff", "fffff", ".", ":", "::", "%", "/", "g", "")
    fc.assert(
      fc.property(fc.array(word, { maxLength: 12 }), (words) => {
        const text = words.join("")
        assert.strictEqual(parseAddress(text) !== undefined, isIP(text) !== 0, text)
      }),
      { numRuns: 2000 }
    )
    assert.isUndefined(parseAddress("unknown"))
    assert.isUndefined(parseAddress(`${"0".repeat(100)}::1`))
  })
})

describe("a range", () => {
  const holds = (address: string, range: string) => isInRange(parseAddress(address)!, parseRange(range)!)

  it("has the addresses that the system finds in it", () => {
    const pair = (one: fc.Arbitrary<string>, most: number) => fc.tuple(one, one, fc.integer({ min: 0, max: most }))
    fc.assert(
      fc.property(fc.oneof(pair(v4, 32), pair(v6, 128)), ([address, network, bits]) => {
        if (isMapped(address) || isMapped(network)) return
        const list = new BlockList()
        list.addSubnet(network, bits, familyOf(network))
        assert.strictEqual(holds(address, `${network}/${bits}`), list.check(address, familyOf(address)))
      }),
      { numRuns: 500 }
    )
  })

  it("of IPv4 addresses has those that are mapped into IPv6, in either form", () => {
    assert.isTrue(holds("::ffff:10.1.2.3", "10.0.0.0/8"))
    assert.isTrue(holds("10.1.2.3", "::ffff:10.0.0.0/104"))
    assert.isFalse(holds("11.1.2.3", "::ffff:10.0.0.0/104"))
    assert.isTrue(holds("192.0.2.1", "192.0.2.1"))
    assert.isFalse(holds("192.0.2.1", "::/0"))
  })

  it("is no text with another prefix", () => {
    for (
      const text of [
        "10.0.0.0/33",
        "::/129",
        "10.0.0.0/",
        "10.0.0.0/8/8",
        "10.0.0.0/-1",
        "10/8",
        "::ffff:1.2.3.4/95",
        ""
      ]
    ) {
      assert.isUndefined(parseRange(text), text)
    }
  })
})

describe("what is kept of a client's address", () => {
  it("is its /24 or /48, all of it, or nothing", () => {
    assert.strictEqual(shownAddress("203.0.113.77", "prefix"), "203.0.113.0/24")
    assert.strictEqual(shownAddress("::ffff:203.0.113.77", "prefix"), "203.0.113.0/24")
    assert.strictEqual(shownAddress("2001:db8:1:2::3", "prefix"), "2001:db8:1::/48")
    assert.strictEqual(shownAddress("203.0.113.77", "full"), "203.0.113.77")
    assert.isUndefined(shownAddress("203.0.113.77", "none"))
    for (const privacy of ["full", "prefix"] as const) assert.isUndefined(shownAddress("unknown", privacy))
  })
})
