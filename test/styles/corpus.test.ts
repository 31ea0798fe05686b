/**
 * The sieve's corpus through the whole gateway: each text as the upstream's reply, read back by the vendors' SDKs, streamed
 * and not. The styles take turns, so that each has texts of every form; with more effort every text goes to every style, and a daily run
 * has one text in three.
 * Where a text may be cut is the sieve's own tests' matter.
 */
import { assert, describe, it } from "@effect/vitest"
import { type Case, feed, type Item, readCases, replyOf, tools } from "../sieve/support.ts"
import { effort, isLookedAt } from "../support/effort.ts"
import { assertSame, everywhere, saying, type Written } from "../support/sameReply.ts"
import { type AskTool, styleClients, styleNames } from "../support/styleClients.ts"
import { base, useGateway } from "./support.ts"

const clients = styleClients(base, { fetch: useGateway() })

const declared: ReadonlyArray<AskTool> = tools.map(({ description, name, parameters }) => ({
  name,
  description: description ?? "",
  parameters: parameters ?? { type: "object" }
}))

/** What the sieve makes of a text is what its corpus says; here it also tells the order of text and calls. */
const writtenOf = (items: ReadonlyArray<Item>): Written => {
  const calls = items.filter((item) => typeof item !== "string")
  return {
    pieces: items.map((item) =>
      typeof item === "string"
        ? { _tag: "Text", text: item }
        : item.isFinished
        ? { _tag: "Call", name: item.name, arguments: JSON.parse(item.arguments) }
        : { _tag: "CutOff", call: { name: item.name, arguments: item.arguments } }
    ),
    finish: calls.some((call) => !call.isFinished) ? "length" : calls.length > 0 ? "tool_calls" : "stop"
  }
}

const asking = ({ text }: Case) => ({ content: `!chunk 24\n${saying(text)}`, tools: declared })

describe("a reply's calls are the same in every style, streamed and not", () => {
  const cases = ["families", "details", "noCalls"].flatMap((file) => [
    ...Map.groupBy(readCases(file), ({ name }) => file === "families" ? name.slice(0, name.indexOf(":")) : file)
  ])
  for (const [place, [name, group]] of cases.entries()) {
    it(`${name}`, async () => {
      for (const [i, test] of group.entries()) {
        if (test.text === "" || !isLookedAt(place + i, 3)) continue
        const styles = effort > 1 ? styleNames : [styleNames[i % styleNames.length]!]
        await assertSame(clients, asking(test), writtenOf(replyOf(feed([test.text]))), styles).catch(
          (error: unknown) => {
            throw new Error(test.name, { cause: error })
          }
        )
      }
    })
  }

  it("a reply without any text is a failure everywhere", async () => {
    const empty = readCases("noCalls").filter(({ text }) => text === "")
    assert.lengthOf(empty, 1)
    for (const { result, style } of await everywhere(clients, asking(empty[0]!))) {
      assert(result._tag === "Failed")
      assert.strictEqual(result.status, 503)
      assert.strictEqual(result.code, style === "generate" ? "UNAVAILABLE" : "upstream_empty_output")
    }
  })
})
