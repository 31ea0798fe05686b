/** What stays of the items before a compaction. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { Item } from "../../../../src/contracts/responses/items.ts"
import { Faults } from "../../../../src/contracts/shared/Faults.ts"
import { runSync, Slice } from "../../../../src/domain/stream/cooperative.ts"
import { compactionItem, keptTexts, openedItems } from "../../../../src/styles/responses/compaction/compactedItems.ts"
import { runs } from "../../../support/effort.ts"

const user = (content: string): Item => ({ type: "message", role: "user", content })

const call: Item = { type: "function_call", name: "f", call_id: "c" }

const placed = (items: ReadonlyArray<Item>) => items.map((item, i) => ({ item, field: `input[${i}]`, sent: undefined }))

/** The items after compactions are opened; a seal says what follows its first five characters. */
const opened = (items: ReadonlyArray<Item>) =>
  runSync(openedItems(placed(items), (seal) => seal.slice(5) || undefined, new Faults(), new Slice()))
    .map(({ item }) => item)

describe("the kept messages of the user", () => {
  it("are the newest ones up to a bound, of which only the oldest is cut", () => {
    const lengths = fc.array(fc.integer({ min: 1, max: 30_000 }), { maxLength: 20 })
    fc.assert(
      fc.property(lengths, (lengths) => {
        const texts = lengths.map((length, i) => `${i} `.padEnd(length, "x"))
        const kept = runSync(keptTexts(texts.flatMap((text) => [user(text), call])))
        assert.isAtMost(kept.join("").length, 80_000)
        const last = texts.slice(texts.length - kept.length)
        assert.deepStrictEqual(kept.slice(1), last.slice(1))
        const [oldest = "", oldestSent = ""] = [kept[0], last[0]]
        if (oldest !== oldestSent) assert.match(oldest, /\n\[The rest was cut\.\]$/)
        const total = texts.join("").length
        if (total <= 80_000) assert.deepStrictEqual(kept, texts)
        else assert.isAbove(kept.join("").length, 79_900)
      }),
      { numRuns: runs(100) }
    )
  })
})

describe("a compaction among items", () => {
  const compaction = compactionItem("gwc1_what was done")

  it("leaves the items as they are where only messages come before it", () => {
    const first: Item = { role: "user", content: [{ type: "input_image", image_url: "data:image/png;base64,AA" }] }
    const items = opened([first, compaction, user("Now?"), call])
    assert.strictEqual(items[0], first)
    assert.lengthOf(items, 4)
    assert.include(JSON.stringify(items[1]), "what was done")
  })

  it("counts where it is the newest; an unreadable one stands for nothing", () => {
    const items = opened([user("A"), call, compactionItem("gwc1_older"), call, compaction, compactionItem("gwc1_")])
    const texts = items.map((item) => JSON.stringify(item))
    assert.lengthOf(items, 3)
    assert.include(texts[0], "\"A\"")
    assert.include(texts[1], "what was done")
    assert.include(texts[2], "cannot be read here")
    assert.lengthOf(opened([user("A"), call, compactionItem("gwc1_")]), 3)
  })
})
