/**
 * Which of the configured keys the page of keys shows and copies: by what the gateway calls them.
 */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { createHash } from "node:crypto"
import { keyId } from "../../../src/domain/identity.ts"
import { keyIdOf, keyOfId } from "../../../src/web/pages/keys/preview.ts"
import { sha256Hex } from "../../../src/web/parts/sha256.ts"

const ofNode = (text: string): string => createHash("sha256").update(text).digest("hex")

const text = fc.string({ unit: "binary", maxLength: 200 })

describe("the keys of a list", () => {
  it("have the ids that the gateway gives them", () => {
    for (const length of [0, 1, 55, 56, 63, 64, 65, 119, 120, 100_000]) {
      assert.strictEqual(sha256Hex("a".repeat(length)), ofNode("a".repeat(length)))
    }
    fc.assert(fc.property(text, (key) => {
      assert.strictEqual(sha256Hex(key), ofNode(key))
      assert.strictEqual(keyIdOf(` ${key}\n`), keyId(key, ofNode))
    }))
  })

  it("are found wherever they stand, and nothing is for what is not configured", () => {
    const keys = ["sk-team-b", "sk-team-a", "sk-team-c"]
    for (const key of [...keys, ...keys]) assert.strictEqual(keyOfId(keys, keyIdOf(key)), key)
    assert.isUndefined(keyOfId(keys, keyIdOf("sk-team-new")))
    assert.isUndefined(keyOfId([], keyIdOf("sk-team-a")))
  })
})
