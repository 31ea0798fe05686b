/** @jsxImportSource preact */
/**
 * Lists that hold still under the hand, in Chromium.
 */
import { afterEach, assert, describe, expect, it } from "vitest"
import { page, userEvent } from "vitest/browser"
import { Markdown } from "../../../src/web/parts/Markdown.tsx"
import { MenuHost, RowMenu } from "../../../src/web/parts/Menu.tsx"
import { changesBetween } from "../../../src/web/parts/still.ts"
import { LongTable, Row, Table } from "../../../src/web/parts/Table.tsx"
import { draw } from "./support.tsx"

const columns = [{ name: "Key", rank: 1, sort: "name" }, { name: "Today", rank: 2, number: true }, {
  name: "Actions",
  hidden: true
}] as const

/** A list of keys; `today` is a value in each row. */
const List = ({ names, today = 0 }: { readonly names: ReadonlyArray<string>; readonly today?: number }) => (
  <>
    <Table name="Keys" columns={columns} rows={names.length} empty="No key.">
      {names.map((name) => (
        <Row
          key={name}
          cells={[name, String(today), <RowMenu of={name} items={[{ id: "edit", text: "Edit", onClick: () => {} }]} />]}
        />
      ))}
    </Table>
    <MenuHost />
  </>
)

const rows = () => [...document.querySelectorAll("tbody th")].map(({ textContent }) => textContent)
const row = (name: string) => page.getByRole("row", { name: new RegExp(`^${name}`) })
const away = () => userEvent.hover(page.getByRole("columnheader", { name: "Key" }))
const changed = (text: string) => page.getByRole("button", { name: text, exact: true })

afterEach(async () => {
  location.hash = ""
  getSelection()?.removeAllRanges()
  await userEvent.unhover(document.body)
})

describe("a list under the hand", () => {
  it("keeps its rows and their order while the pointer is at them, and changes the values in them", async () => {
    draw(<List names={["ada", "bob"]} />)
    await userEvent.hover(row("bob"))
    draw(<List names={["bob", "eve"]} today={7} />)
    await expect.element(row("bob")).toHaveTextContent("bob7")
    assert.deepStrictEqual(rows(), ["ada", "bob"])
    await expect.element(changed("2 changes")).toBeVisible()
    await away()
    await expect.poll(rows).toEqual(["bob", "eve"])
    await expect.element(changed("2 changes")).not.toBeInTheDocument()
  })

  it("takes what waits on a click, while the focus of the keyboard stays at its rows", async () => {
    draw(<List names={["ada", "bob"]} />)
    await userEvent.tab()
    while (document.activeElement?.ariaLabel !== "Actions ada") await userEvent.tab()
    draw(<List names={["bob", "ada"]} />)
    await expect.element(changed("1 change")).toBeVisible()
    assert.deepStrictEqual(rows(), ["ada", "bob"])
    await changed("1 change").click()
    await expect.poll(rows).toEqual(["bob", "ada"])
  })

  it("keeps a row whose menu is open, and the menu", async () => {
    draw(<List names={["ada", "bob"]} />)
    await page.getByRole("button", { name: "Actions ada" }).click()
    await expect.element(page.getByRole("menuitem", { name: "Edit" })).toBeVisible()
    await away()
    draw(<List names={["bob"]} />)
    await expect.element(changed("1 change")).toBeVisible()
    assert.deepStrictEqual(rows(), ["ada", "bob"])
    await expect.element(page.getByRole("menuitem", { name: "Edit" })).toBeVisible()
    await userEvent.keyboard("{Escape}")
    ;(document.activeElement as HTMLElement).blur()
    await expect.poll(rows).toEqual(["bob"])
  })

  it("keeps its rows while text in them is selected", async () => {
    draw(<List names={["ada", "bob"]} />)
    getSelection()?.selectAllChildren(row("ada").element())
    draw(<List names={["bob"]} />)
    await expect.element(changed("1 change")).toBeVisible()
    getSelection()?.removeAllRanges()
    await expect.poll(rows).toEqual(["bob"])
  })

  it("shows the rows of another order or part immediately", async () => {
    draw(<List names={["ada", "bob"]} />)
    await userEvent.hover(row("ada"))
    location.hash = "#/keys?sort=name&order=desc"
    draw(<List names={["bob", "ada"]} />)
    await expect.poll(rows).toEqual(["bob", "ada"])

    const numbers = Array.from({ length: 101 }, (_, at) => ({ at }))
    draw(
      <LongTable name="Frames" columns={["Frame"]} rows={numbers} empty="">
        {({ at }) => <th scope="row">{at}</th>}
      </LongTable>
    )
    getSelection()?.selectAllChildren(row("42").element())
    await page.getByRole("button", { name: "Next page" }).click()
    await expect.poll(rows).toEqual(["100"])
  })

  it("an empty list shows what arrives", async () => {
    draw(<List names={[]} />)
    await userEvent.hover(page.getByText("No key."))
    draw(<List names={["ada"]} />)
    await expect.poll(rows).toEqual(["ada"])
  })
})

it("a reply keeps what is selected in it while it goes on, and shows the rest afterwards", async () => {
  const drawn = draw(<Markdown text="The answer is" />)
  const text = () => drawn.querySelector(".markdown")?.textContent
  getSelection()?.selectAllChildren(drawn.querySelector("p")!)
  draw(<Markdown text="The answer is 42" />)
  assert.strictEqual(String(getSelection()), "The answer is")
  assert.strictEqual(text(), "The answer is")
  getSelection()?.removeAllRanges()
  await expect.poll(text).toBe("The answer is 42")
})

it("changes of a list are the rows that came and went, and one for another order", () => {
  assert.deepStrictEqual(
    [
      changesBetween("abc".split(""), "abc".split("")),
      changesBetween("abc".split(""), "cdb".split("")),
      changesBetween(
        "abc".split(""),
        "cab".split("")
      )
    ],
    [0, 3, 1]
  )
})
