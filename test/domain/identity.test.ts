import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import {
  identifierOf,
  identityKeys,
  keyPrefix,
  keyPreview,
  lookupKeys,
  nationalMobile,
  normalizeMobile,
  tokenIdentifier,
  tokenPreview
} from "../../src/domain/identity.ts"

/** A stand-in that shows what was hashed. */
const sha = (text: string): string => `<${text}>`.padEnd(64, "0")

describe("an account's identity", () => {
  it("is the email, else the mobile as configured, else the token's hash", () => {
    assert.strictEqual(identifierOf({ email: " a@b.c ", mobile: "138", token: "t" }, sha), "a@b.c")
    assert.strictEqual(identifierOf({ email: "  ", mobile: " 138 0013 8000 ", token: "t" }, sha), "138 0013 8000")
    assert.strictEqual(identifierOf({ email: "", mobile: "", token: " tok " }, sha), "token:<tok>00000000000")
    assert.strictEqual(identifierOf({}, sha), "")
  })

  it("uses the first 16 hex digits of the trimmed token's hash", () => {
    assert.strictEqual(tokenIdentifier(" abc ", (text) => `${text}${"f".repeat(61)}`), "token:abcfffffffffffff")
  })

  it("writes every spelling of one mobile the same way", () => {
    const spellings = ["13800138000", "138-0013-8000", "8613800138000", "+86 138 0013 8000", "(+86)13800138000"]
    for (const spelling of spellings) assert.strictEqual(normalizeMobile(spelling), "+8613800138000")
    assert.strictEqual(normalizeMobile("+1 (212) 555-0100"), "+12125550100")
    assert.strictEqual(normalizeMobile("12345678901"), "+12345678901")
    assert.strictEqual(normalizeMobile("861234567890"), "+861234567890")
    assert.strictEqual(normalizeMobile("n/a"), "")
  })

  it("sends the national digits of a mobile to the upstream", () => {
    assert.strictEqual(nationalMobile("+86 138 0013 8000"), "13800138000")
    assert.strictEqual(nationalMobile("13800138000"), "13800138000")
    assert.strictEqual(nationalMobile("+1 212 555 0100"), "12125550100")
  })

  it("is found by any spelling of the configured email, mobile or token", () => {
    fc.assert(
      fc.property(fc.integer({ min: 3, max: 9 }), fc.integer({ min: 0, max: 999_999_999 }), (second, rest) => {
        const mobile = `1${second}${String(rest).padStart(9, "0")}`
        const keys = identityKeys({ mobile }, sha)
        for (const spelling of [mobile, `+86${mobile}`, `86 ${mobile.slice(0, 3)} ${mobile.slice(3)}`]) {
          assert.isTrue(lookupKeys(spelling).some((key) => keys.includes(key)))
        }
      })
    )
    assert.deepStrictEqual(identityKeys({ email: "User@Example.com", mobile: "13800138000", token: "t" }, sha), [
      "user@example.com",
      "+8613800138000"
    ])
    assert.include(lookupKeys(" USER@example.com "), "user@example.com")
    assert.deepStrictEqual(lookupKeys("token:0123456789abcdef"), ["token:0123456789abcdef"])
  })

  it("shows both ends of a generated key, at most a quarter of its secret, and of other keys the beginning", () => {
    assert.strictEqual(keyPreview(" sk-gw-abcdefghijklmnopqrstuvwxyz0123456789 "), "sk-gw-abcd...6789")
    assert.strictEqual(keyPreview("sk-gw-abcdefghijklmnop"), "sk-gw-ab...op")
    assert.strictEqual(keyPreview("sk-gw-abc"), "sk-...")
    assert.strictEqual(keyPreview("gw-abcdefghijklmnopqrstuvwxyz"), "gw-abcde...")
    fc.assert(
      fc.property(fc.stringMatching(/^[\w-]{8,60}$/), (secret) => {
        const shown = keyPreview(`${keyPrefix}${secret}`).slice(keyPrefix.length).replace("...", "")
        assert.isAtMost(shown.length, Math.min(8, secret.length / 4))
      })
    )
  })

  it("never shows more than eight characters or a third of a token", () => {
    assert.strictEqual(tokenPreview("abcdefghijklmnopqrstuvwxyz"), "abcdefgh...")
    assert.strictEqual(tokenPreview("abcdefghi"), "abc...")
    assert.strictEqual(tokenPreview("ab"), "...")
    assert.strictEqual(tokenPreview("  "), "")
    fc.assert(
      fc.property(fc.string({ minLength: 1, maxLength: 60 }), (token) => {
        const shown = tokenPreview(token).replace(/\.\.\.$/, "")
        assert.isAtMost(shown.length, Math.min(8, token.trim().length / 3))
      })
    )
  })
})
