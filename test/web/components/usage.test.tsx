/** @jsxImportSource preact */
/**
 * The prompt cache in the page of usage, in Chromium.
 */
import { assert, describe, expect, it } from "vitest"
import { page } from "vitest/browser"
import { CacheCell } from "../../../src/web/pages/usage/CacheCell.tsx"
import { Headline } from "../../../src/web/pages/usage/Headline.tsx"
import { MissReasons } from "../../../src/web/pages/usage/MissReasons.tsx"
import { draw } from "./support.tsx"

const facets = {
  key: [],
  model: [],
  style: [],
  app: [],
  session: [],
  upstream: [],
  account: [],
  outcome: [],
  code: [],
  slow: []
}

describe("the prompt cache in the page of usage", () => {
  it("each reason leads to its requests of the same filter", async () => {
    const counted = {
      total: 40,
      facets: {
        ...facets,
        prompt_cache: [{ value: "moved", name: null, count: 10 }, { value: "expired", name: null, count: 2 }]
      }
    }
    draw(<MissReasons counted={counted} query={{ key: "\"7\"", from: "2026-11-27T10:00:00Z" }} />)
    const rows = [...document.querySelectorAll("tbody tr")]
    assert.deepStrictEqual(rows.map((row) => [...row.children].map(({ textContent }) => textContent)), [
      ["Another account answered", "10", "25 %"],
      ["Expired", "2", "5 %"]
    ])
    await expect.element(page.getByRole("link", { name: "Another account answered" })).toHaveAttribute(
      "href",
      "#/requests?key=%227%22&from=2026-11-27T10%3A00%3A00Z&prompt_cache=moved"
    )
    draw(<MissReasons counted={{ total: 40, facets: { ...facets, prompt_cache: [] } }} query={{}} />)
    assert.strictEqual(document.querySelector("section"), null)
  })

  it("a row shows the share from the cache, and the three parts of its prompts", () => {
    const cells = draw(
      <table>
        <tr>
          <CacheCell row={{ prompt_tokens: 1_000, cached_tokens: 600, cache_write_tokens: 100 }} />
          <CacheCell row={{ prompt_tokens: 0, cached_tokens: 0, cache_write_tokens: 0 }} />
        </tr>
      </table>
    ).querySelectorAll("td")
    assert.deepStrictEqual([...cells].map(({ textContent }) => textContent), ["60 %", "–"])
    assert.strictEqual(cells[0]?.querySelector("span")?.title, "600 cached\n100 written to the cache\n300 fresh")
    const widths = [...cells[0]?.querySelectorAll<HTMLElement>(".parts > span") ?? []].map(({ style }) =>
      style.flexGrow
    )
    assert.deepStrictEqual(widths, ["600", "100", "300"])
  })
})

describe("the headline of the page of usage", () => {
  const sums = {
    requests: 12_480,
    failed: 390,
    total_tokens: 14_300_000,
    prompt_tokens: 11_800_000,
    cached_tokens: 7_316_000,
    cost: "56.88",
    first_event_p95_ms: 1_480
  }
  const rows = [{ ...sums, model: "small", cost: "17.06" }, { ...sums, model: "large", cost: "39.82" }]
  const reply = { currency: "USD", rows, totals: sums } as unknown as Parameters<typeof Headline>[0]["reply"]
  const of = (more: Partial<Parameters<typeof Headline>[0]>): string =>
    draw(
      <Headline
        reply={reply}
        measure="cost"
        range="day"
        before={50.79}
        nameOf={({ model }) => model ?? ""}
        {...more}
      />
    ).textContent

  it("says how much it is, how that has changed, who has most of it, and what caches had", () => {
    assert.strictEqual(
      of({}),
      "$56.88 in 24 hours, 12 % more than in the 24 hours before. 70 % of it is large. " +
        "62 % of the tokens of prompts came from caches."
    )
    assert.match(of({ before: 113.76, range: "week" }), /^\$56\.88 in 7 days, 50 % less than in the 7 days before\./)
    assert.match(of({ before: 56.9 }), /, as much as in the 24 hours before\./)
    assert.match(of({ before: 1, range: "custom" }), /, 57 times as much as in the time before\./)
    assert.match(of({ before: undefined }), /^\$56\.88 in 24 hours\. 70 % of it is large\./)
    assert.match(of({ before: 0, nameOf: undefined }), /^\$56\.88 in 24 hours\. 62 %/)
    assert.match(of({ measure: "requests", before: 12_480 }), /^12,480 requests in 24 hours, as much as/)
    assert.match(of({ measure: "first_event_p95_ms", before: 740 }), /^First p95 1\.48 s in 24 hours, 100 % more than/)
  })

  it("is absent without requests", () => {
    const none = { ...reply, totals: { ...sums, requests: 0 } } as unknown as typeof reply
    assert.strictEqual(of({ reply: none }), "")
  })
})
