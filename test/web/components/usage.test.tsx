/** @jsxImportSource preact */
/**
 * The prompt cache in the page of usage, in Chromium.
 */
import { assert, describe, expect, it } from "vitest"
import { page } from "vitest/browser"
import { CacheCell } from "../../../src/web/pages/usage/CacheCell.tsx"
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
