/** The sieve reads back the calls that are rendered into the history. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { foldText } from "../../src/sieve/fold.ts"
import { renderCall, unparsedKey } from "../../src/sieve/history.ts"
import { runs } from "../support/effort.ts"
import { cutAtRandom, feed, replyOf, seeded } from "./support.ts"

const markers = [
  "</tool_call>",
  "<tool_call>",
  "</invoke>",
  "</parameter>",
  "<｜tool▁call▁end｜>",
  "```",
  "~~~",
  "\n```json\n",
  "]]>",
  "<![CDATA[",
  "<|user|>",
  "<|end|>",
  "[TOOL_CALLS]",
  "{\"tool_calls\":[",
  "＜／｜ＤＳＭＬ｜invoke＞",
  "&lt;",
  "\\",
  "\"",
  "\n",
  "\u2028",
  "\u200b",
  "🌍",
  "\ud83d",
  "\u0000",
  "`",
  "|",
  "'"
]

const hostile = fc.array(fc.oneof(fc.constantFrom(...markers), fc.string({ unit: "binary", maxLength: 6 })), {
  maxLength: 8
})
  .map((parts) => parts.join(""))

const name = fc.oneof(
  fc.stringMatching(/^[a-zA-Z0-9_-]{1,64}$/),
  hostile.filter((name) => name !== "").map((name) => name.slice(0, 128))
)

const json = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    hostile,
    fc.double({ noDefaultInfinity: true, noNaN: true }),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie("value"), { maxLength: 4 }),
    tie("object")
  ),
  object: fc.dictionary(hostile, tie("value"), { maxKeys: 4 })
}))

describe("a rendered call", () => {
  it("is read back as the same call, in every cut, for any name and arguments", () => {
    fc.assert(
      fc.property(name, json.object, fc.nat(2), fc.integer(), (name, args, indent, seed) => {
        const text = JSON.stringify(args, null, indent)
        const rendered = renderCall({ name, arguments: text })
        const random = seeded(seed)
        for (
          const pieces of [[rendered], rendered.split(""), cutAtRandom(rendered, random), cutAtRandom(rendered, random)]
        ) {
          const [call, ...rest] = replyOf(feed(pieces))
          assert.deepStrictEqual(rest, [])
          if (call === undefined || typeof call === "string") throw new Error(`no call in ${rendered}`)
          assert.isTrue(call.isFinished)
          assert.strictEqual(call.name, name)
          assert.deepStrictEqual(JSON.parse(call.arguments), JSON.parse(text))
        }
      }),
      { numRuns: runs(1000) }
    )
  })

  it("is read back between texts and other calls", () => {
    const first = renderCall({ name: "a", arguments: "{\"x\":\"</tool_call>\"}" })
    const second = renderCall({ name: "b", arguments: "{}" })
    assert.deepStrictEqual(replyOf(feed([`Hm.\n${first}\n${second}\nSo.`])), [
      "Hm.\n",
      { name: "a", arguments: "{\"x\":\"\\u003c/tool_call\\u003e\"}", isFinished: true },
      "\n",
      { name: "b", arguments: "{}", isFinished: true },
      "\nSo."
    ])
  })

  it("contains no marker inside its tags", () => {
    fc.assert(
      fc.property(hostile, hostile, (name, value) => {
        const inner = renderCall({ name, arguments: JSON.stringify({ [value]: value }) })
          .slice("<tool_call>\n".length, -"\n</tool_call>".length)
        assert.notMatch(inner, /[<>|`~&]|\[TOOL_CALLS\]/)
        assert.strictEqual(foldText(inner), inner)
      }),
      { numRuns: runs(500) }
    )
  })

  it("keeps numbers, spacing and the order of members as the caller wrote them", () => {
    assert.include(
      renderCall({ name: "a", arguments: "{\"z\": 1.0, \"a\": 12345678901234567890}" }),
      "{\"z\": 1.0, \"a\": 12345678901234567890}"
    )
  })

  it("keeps arguments that are not a JSON object under a key", () => {
    for (const text of ["{\"city\": \"Os", "[1]", "5", "plain <tool_call>", "null"]) {
      const [call] = replyOf(feed([renderCall({ name: "a", arguments: text })]))
      if (call === undefined || typeof call === "string") throw new Error("no call")
      assert.deepStrictEqual(JSON.parse(call.arguments), { [unparsedKey]: text })
    }
  })

  it("has an empty object for empty arguments", () => {
    assert.strictEqual(
      renderCall({ name: "a", arguments: "" }),
      "<tool_call>\n{\"name\": \"a\", \"arguments\": {}}\n</tool_call>"
    )
  })
})
