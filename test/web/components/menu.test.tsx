/** @jsxImportSource preact */
/**
 * Menus of rows, in Chromium.
 */
import { assert, describe, expect, it } from "vitest"
import { page, userEvent } from "vitest/browser"
import { MenuHost, RowMenu } from "../../../src/web/parts/Menu.tsx"
import { Table } from "../../../src/web/parts/Table.tsx"
import { draw } from "./support.tsx"

const done: Array<string> = []

/**
 * Rows in a table, each with a menu; `isOff` changes the text of an item, `above` is the height of what stands above. Another part shows
 * its own rows; another table is made anew.
 */
const List = ({ above = 0, isOff = false, names, part = 1, table = "first" }: {
  readonly names: ReadonlyArray<string>
  readonly above?: number
  readonly isOff?: boolean
  readonly part?: number
  readonly table?: string
}) => (
  <>
    <h1 tabIndex={-1}>Keys</h1>
    <div style={{ height: above }} />
    <Table key={table} part={part} name="Keys" columns={["Key", "Actions"]} rows={names.length} empty="No key.">
      {names.map((name) => (
        <tr key={name}>
          <th scope="row">{name}</th>
          <td>
            <RowMenu
              of={name}
              items={[
                { id: "toggle", text: isOff ? "Enable" : "Disable", onClick: () => done.push(`toggle ${name}`) },
                { id: "delete", text: "Delete", onClick: () => done.push(`delete ${name}`) }
              ]}
            />
          </td>
        </tr>
      ))}
    </Table>
    <div style={{ height: 3_000 }} />
    <MenuHost />
  </>
)

const button = (name: string) => page.getByRole("button", { name: `Actions ${name}` })
const item = (name: string) => page.getByRole("menuitem", { name })

/** How far the menu stands below its button, in pixels. */
const distance = (name: string) =>
  document.querySelector("[role=menu]")!.getBoundingClientRect().top -
  button(name).element().getBoundingClientRect().bottom

describe("the menu of a row", () => {
  it("opens and closes by its button, by another one and by Escape, and does what is chosen for its row", async () => {
    draw(<List names={["ada", "bob"]} />)
    await button("ada").click()
    await expect.element(button("ada")).toHaveAttribute("aria-expanded", "true")
    await button("ada").click()
    await expect.element(item("Disable")).not.toBeInTheDocument()
    await expect.element(button("ada")).toHaveAttribute("aria-expanded", "false")
    await button("bob").click()
    await button("ada").click()
    await expect.element(button("ada")).toHaveAttribute("aria-expanded", "true")
    await expect.element(button("bob")).toHaveAttribute("aria-expanded", "false")
    await userEvent.keyboard("{ArrowDown}")
    await expect.element(item("Delete")).toHaveFocus()
    await userEvent.keyboard("{Escape}")
    await expect.element(button("ada")).toHaveFocus()
    await button("bob").click()
    await item("Delete").click()
    assert.deepStrictEqual(done.splice(0), ["delete bob"])
    await expect.element(item("Delete")).not.toBeInTheDocument()
  })

  it("stays at its button while the page scrolls and when something is put in above", async () => {
    draw(<List names={["ada"]} />)
    await button("ada").click()
    await expect.poll(() => distance("ada")).toBe(4)
    scrollTo(0, 20)
    await expect.poll(() => distance("ada")).toBe(4)
    draw(<List names={["ada"]} above={52} />)
    await expect.poll(() => distance("ada")).toBe(4)
    scrollTo(0, 0)
  })

  it("keeps the focus on an item whose text changes", async () => {
    draw(<List names={["ada"]} />)
    await button("ada").click()
    await expect.element(item("Disable")).toHaveFocus()
    draw(<List names={["ada"]} isOff />)
    await expect.element(item("Enable")).toHaveFocus()
    await userEvent.keyboard("{Enter}")
    assert.deepStrictEqual(done.splice(0), ["toggle ada"])
  })

  it("closes when its row is gone, and the focus goes to the table, else to the heading", async () => {
    draw(<List names={["ada"]} />)
    await button("ada").click()
    await expect.element(item("Disable")).toHaveFocus()
    draw(<List names={["bob"]} part={2} />)
    await expect.element(item("Disable")).not.toBeInTheDocument()
    await expect.element(page.getByRole("group", { name: "Keys" })).toHaveFocus()
    await button("bob").click()
    await expect.element(item("Disable")).toHaveFocus()
    draw(<List names={["bob"]} part={2} table="second" />)
    await expect.element(item("Disable")).not.toBeInTheDocument()
    await expect.element(page.getByRole("heading", { name: "Keys" })).toHaveFocus()
  })

  it("gives the focus of its button to the table when its row is gone", async () => {
    draw(<List names={["ada"]} />)
    await button("ada").click()
    await item("Disable").click()
    await expect.element(button("ada")).toHaveFocus()
    draw(<List names={["bob"]} part={2} />)
    await expect.element(page.getByRole("group", { name: "Keys" })).toHaveFocus()
  })
})
