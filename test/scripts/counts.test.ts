/** The counts of src: what is a name of a contract, and what breaks a ceiling. */
import { assert, describe, it } from "@effect/vitest"
import { contractNames, countViolations } from "../../scripts/counts.ts"

const named = (text: string) => contractNames("src/domain/a.ts", text)

describe("a name of a contract", () => {
  it("is a string of that name, in values and in types", () => {
    assert.deepStrictEqual(named(`const is = (style: "chat" | "other") => style === "responses"`), [
      "src/domain/a.ts:1: chat",
      "src/domain/a.ts:1: responses"
    ])
  })

  it("is a key of a table by contract", () => {
    assert.deepStrictEqual(named("const most = {\n  chat: 1,\n  generate: 2,\n  other: 3\n}"), [
      "src/domain/a.ts:2: chat",
      "src/domain/a.ts:3: generate"
    ])
    assert.deepStrictEqual(named("interface Most { readonly chat: number; readonly messages: number }"), [
      "src/domain/a.ts:1: chat",
      "src/domain/a.ts:1: messages"
    ])
  })

  it("is no field of a type by which another one is made", () => {
    assert.deepStrictEqual(
      named(`type A = B["responses"] | Omit<B, "session" | "chat">\nconst a: C<"chat"> = d["chat"]`),
      [
        "src/domain/a.ts:2: chat",
        "src/domain/a.ts:2: chat"
      ]
    )
  })

  it("is neither the field of another object nor a part of a longer text", () => {
    assert.deepStrictEqual(
      named(`import { a } from "./chat.ts"\nconst body = { messages: [a], text: "chat completions" }`),
      []
    )
  })
})

describe("a ceiling", () => {
  const counts = {
    "names of contracts": ["src/a.ts:1: chat", "src/a.ts:2: chat"],
    "optional members": [],
    "long files": [],
    "files down": [],
    "files up": []
  }
  const most = { "names of contracts": 2, "optional members": 0, "long files": 0, "files down": 0, "files up": 0 }

  it("holds where the count is equal to it", () => {
    assert.deepStrictEqual(countViolations(counts, most), [])
  })

  it("is broken by a higher count, which is shown by file", () => {
    assert.deepStrictEqual(countViolations(counts, { ...most, "names of contracts": 1 }), [
      "scripts/counts.ts: names of contracts: 2 where 1 are the most\n  2 src/a.ts"
    ])
  })

  it("has to fall with its count", () => {
    assert.deepStrictEqual(countViolations(counts, { ...most, "long files": 3 }), [
      "scripts/counts.ts: long files: lower the ceiling from 3 to 0"
    ])
  })
})
