/** @jsxImportSource preact */
/**
 * Lists that are sorted by their heads and follow the width of the window, in Chromium.
 */
import { afterEach, assert, beforeEach, describe, expect, it } from "vitest"
import { page } from "vitest/browser"
import { Empty } from "../../../src/web/parts/Empty.tsx"
import { Skeleton } from "../../../src/web/parts/Loaded.tsx"
import { Row, Table } from "../../../src/web/parts/Table.tsx"
import { draw } from "./support.tsx"

const columns = [
  { name: "Chosen", hidden: true },
  { name: "Key", rank: 1, sort: "name" },
  { name: "State", rank: 1 },
  { name: "Today", rank: 2, sort: "requests_today", number: true },
  { name: "Last used", rank: 3, sort: "last_used_at", first: "desc" },
  { name: "Actions", hidden: true }
] as const

const List = () => (
  <Table name="Keys" columns={columns} rows={2} empty="No key yet." order={{ sort: "last_used_at", order: "desc" }}>
    <Row cells={[<input type="checkbox" />, "mobile app", "● Active", "12", "5 min ago", <button>⋯</button>]} />
    <Row cells={[<input type="checkbox" />, "batch", "○ Disabled", "0", "–", <button>⋯</button>]} />
  </Table>
)

const head = (name: string) => page.getByRole("columnheader", { name })
const press = (name: string) => head(name).getByRole("button").click()
const texts = (selector: string) =>
  [...document.querySelectorAll(selector)].map(({ children }) => [...children].map(({ textContent }) => textContent))

beforeEach(() => {
  location.hash = "#/keys?page=3&q=app"
})
afterEach(async () => {
  location.hash = ""
  await page.viewport(1280, 800)
})

describe("a list in the console", () => {
  it("is sorted by its heads, and its order is in the address", async () => {
    draw(<List />)
    await expect.element(head("Last used")).toHaveAttribute("aria-sort", "descending")
    await expect.element(head("Today")).toHaveAttribute("aria-sort", "none")
    await expect.element(head("State")).not.toHaveAttribute("aria-sort")
    // Numbers begin with the largest one.
    await press("Today")
    await expect.element(head("Today")).toHaveAttribute("aria-sort", "descending")
    await expect.element(head("Last used")).toHaveAttribute("aria-sort", "none")
    assert.strictEqual(location.hash, "#/keys?q=app&sort=requests_today&order=desc")
    await press("Today")
    await expect.element(head("Today")).toHaveAttribute("aria-sort", "ascending")
    // The third press returns to the list's own order.
    await press("Today")
    await expect.element(head("Last used")).toHaveAttribute("aria-sort", "descending")
    assert.strictEqual(location.hash, "#/keys?q=app")
    await press("Last used")
    await expect.element(head("Last used")).toHaveAttribute("aria-sort", "ascending")
    await press("Key")
    await expect.element(head("Key")).toHaveAttribute("aria-sort", "ascending")
    assert.strictEqual(location.hash, "#/keys?q=app&sort=name&order=asc")
  })

  it("has every column in a wide window", async () => {
    await page.viewport(1100, 800)
    draw(<List />)
    await expect.poll(() => texts("tbody tr")[0]).toEqual(["", "mobile app", "● Active", "12", "5 min ago", "⋯"])
  })

  it("has the columns of rank 3 below the name under 1100 px", async () => {
    await page.viewport(1099, 800)
    draw(<List />)
    await expect.poll(() => texts("tbody tr")).toEqual([
      ["", "mobile appLast used 5 min ago", "● Active", "12", "⋯"],
      ["", "batch", "○ Disabled", "0", "⋯"]
    ])
    assert.strictEqual(document.querySelectorAll("thead th").length, 5)
  })

  it("is of cards under 700 px, name and state first, and its order is chosen from a list", async () => {
    await page.viewport(699, 800)
    draw(<List />)
    await expect.poll(() => texts("tbody tr")).toEqual([
      ["", "mobile app● ActiveToday 12Last used 5 min ago", "⋯"],
      ["", "batch○ DisabledToday 0", "⋯"]
    ])
    assert.deepStrictEqual(texts("tbody .first-line")[0], ["mobile app", "● Active"])
    await page.getByRole("combobox", { name: "Sort by" }).selectOptions("Today ↑")
    await expect.poll(() => location.hash).toBe("#/keys?q=app&sort=requests_today&order=asc")
    const { clientWidth, scrollWidth } = document.documentElement
    assert.isAtMost(scrollWidth, clientWidth)
  })
})

describe("what stands in place of a list in the console", () => {
  it("is rows of the size of what comes while it loads", async () => {
    const drawn = draw(<Skeleton rows={3} />)
    await expect.poll(() => drawn.querySelectorAll(".skeleton > [aria-hidden]").length).toBe(3)
    await expect.element(page.getByText("Loading…")).toBeInTheDocument()
    const heights = [...drawn.querySelectorAll(".skeleton > [aria-hidden]")].map(({ clientHeight }) => clientHeight)
    assert.deepStrictEqual(heights, [32, 32, 32])
  })

  it("is one line and one button if there is nothing", async () => {
    let begun = 0
    const drawn = draw(<Empty action="Create key" onAction={() => begun++}>There are no keys.</Empty>)
    await page.getByRole("button", { name: "Create key" }).click()
    assert.strictEqual(begun, 1)
    assert.strictEqual(drawn.querySelector("p")?.textContent, "There are no keys.")
    assert.isNull(draw(<Empty>Nothing yet.</Empty>).querySelector("button"))
  })
})
