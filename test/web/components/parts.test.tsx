/** @jsxImportSource preact */
/**
 * The console's shared components, each by itself in Chromium: tables, loaded values, pagers, dialogs.
 */
import * as Effect from "effect/Effect"
import * as AsyncResult from "effect/reactivity/AsyncResult"
import * as Atom from "effect/reactivity/Atom"
import { useState } from "preact/hooks"
import { assert, describe, expect, it } from "vitest"
import { page, userEvent } from "vitest/browser"
import { DeleteDialog, Dialog } from "../../../src/web/parts/Dialog.tsx"
import { Loaded } from "../../../src/web/parts/Loaded.tsx"
import { Pager, Table } from "../../../src/web/parts/Table.tsx"
import { registry } from "../../../src/web/state/registry.ts"
import { draw } from "./support.tsx"

const columns = [{ name: "Account" }, { name: "In use", number: true }, { name: "Actions", hidden: true }] as const

const button = (name: string) => page.getByRole("button", { name, exact: true })
const focused = (): string | null | undefined => document.activeElement?.textContent

describe("Table in the console", () => {
  it("an empty table shows its notice over the whole width, without a head", async () => {
    draw(<Table name="Accounts" columns={columns} rows={0} empty="No account yet.">{null}</Table>)
    const table = page.getByRole("table", { name: "Accounts" })
    await expect.element(table.getByRole("cell", { name: "No account yet." })).toHaveAttribute("colspan", "3")
    assert.strictEqual(table.getByRole("columnheader").elements().length, 0)
  })

  it("a long name scrolls in the table's box, which the keyboard can focus", async () => {
    await page.viewport(360, 740)
    const name = `${"a-name-without-an-end".repeat(40)}@example.com`
    draw(
      <Table name="Accounts" columns={columns} rows={1} empty="None." busy>
        <tr>
          <th scope="row" class="nowrap">{name}</th>
          <td class="number">1</td>
          <td>–</td>
        </tr>
      </Table>
    )
    const table = page.getByRole("table", { name: "Accounts" })
    await expect.element(table).toHaveAttribute("aria-busy", "true")
    // A hidden column has a name for screen readers.
    await expect.element(table.getByRole("columnheader", { name: "Actions" })).toBeInTheDocument()
    const box = page.getByRole("group", { name: "Accounts" }).element()
    assert.isAbove(box.scrollWidth, box.clientWidth)
    const { clientWidth, scrollWidth } = document.documentElement
    assert.isAtMost(scrollWidth, clientWidth)
    await userEvent.tab()
    assert.strictEqual(document.activeElement, box)
    await page.viewport(1280, 800)
  })
})

describe("Loaded in the console", () => {
  it("shows the loading notice, the failure, then the value, which stays while the next one loads", async () => {
    const answers: Array<(answer: Effect.Effect<string, { readonly message: string }>) => void> = []
    const atom = Atom.make(Effect.callback<string, { readonly message: string }>((resume) => {
      answers.push(resume)
    }))
    draw(
      <Loaded atom={atom}>{(value, waiting) => <p>{`${value}${waiting ? ", more to come" : ""}`}</p>}</Loaded>
    )
    await expect.element(page.getByText("Loading…")).toBeVisible()
    await expect.poll(() => answers.length).toBe(1)
    answers[0]!(Effect.fail({ message: "The pool is away." }))
    await expect.element(page.getByRole("alert").getByText("The pool is away.")).toBeVisible()
    await button("Try again").click()
    await expect.poll(() => answers.length).toBe(2)
    answers[1]!(Effect.succeed("first"))
    await expect.element(page.getByText("first", { exact: true })).toBeVisible()
    assert.strictEqual(page.getByRole("alert").elements().length, 0)
    registry.refresh(atom)
    await expect.element(page.getByText("first, more to come")).toBeVisible()
    await expect.poll(() => answers.length).toBe(3)
    answers[2]!(Effect.succeed("second"))
    await expect.element(page.getByText("second", { exact: true })).toBeVisible()
    assert.isTrue(AsyncResult.isSuccess(registry.get(atom)))
  })

  it("keeps typed text, below the reason, when reloading fails", async () => {
    let isAway = false
    const atom = Atom.make(
      Effect.suspend(() => isAway ? Effect.fail({ message: "The gateway is away." }) : Effect.succeed("Name"))
    )
    draw(<Loaded atom={atom}>{(label) => <input aria-label={label} />}</Loaded>)
    const field = page.getByRole("textbox", { name: "Name" })
    await field.fill("half a")
    isAway = true
    registry.refresh(atom)
    await expect.element(page.getByRole("alert").getByText("The gateway is away.")).toBeVisible()
    await expect.element(field).toHaveValue("half a")
    isAway = false
    await button("Try again").click()
    await expect.element(page.getByRole("alert")).not.toBeInTheDocument()
    await expect.element(field).toHaveValue("half a")
  })
})

describe("Pager in the console", () => {
  const List = ({ pages }: { readonly pages: number }) => {
    const [at, setAt] = useState(1)
    return <Pager page={at} shown={at} pages={pages} total="some keys" onPage={setAt} />
  }

  it("leads to each page, and back to the last page when the list becomes shorter", async () => {
    draw(<List pages={3} />)
    await expect.element(button("Previous page")).toBeDisabled()
    await button("Next page").click()
    await button("Next page").click()
    await expect.element(page.getByText("Page 3 of 3 · some keys")).toBeVisible()
    await expect.element(button("Next page")).toBeDisabled()
    draw(<List pages={1} />)
    await expect.element(page.getByText("Page 1 of 1 · some keys")).toBeVisible()
  })
})

describe("Dialog in the console", () => {
  const Opener = () => {
    const [open, setOpen] = useState(false)
    return (
      <>
        <button type="button">Before</button>
        <button type="button" onClick={() => setOpen(true)}>Open</button>
        <button type="button">After</button>
        {open
          ? (
            <Dialog name="A name" onClose={() => setOpen(false)}>
              <input aria-label="First" />
              <button type="button" onClick={() => setOpen(false)}>Close</button>
            </Dialog>
          )
          : null}
      </>
    )
  }

  it("focuses its first field, keeps the focus inside in both directions, and returns it", async () => {
    draw(<Opener />)
    await button("Open").click()
    await expect.element(page.getByRole("dialog", { name: "A name" })).toBeVisible()
    await expect.element(page.getByRole("textbox", { name: "First" })).toHaveFocus()
    const behind = new Set<string | null | undefined>(["Before", "Open", "After"])
    for (const shift of [false, true]) {
      const seen = new Set<string | null>()
      // More often than the dialog has elements to focus.
      for (let i = 0; i < 6; i++) {
        await userEvent.tab({ shift })
        assert.isFalse(behind.has(focused()), `${focused()} has the focus`)
        seen.add(document.activeElement?.tagName ?? null)
      }
      assert.includeMembers([...seen], ["INPUT", "BUTTON"])
    }
    await userEvent.keyboard("{Escape}")
    await expect.element(page.getByRole("dialog")).not.toBeInTheDocument()
    await expect.poll(focused).toBe("Open")
  })

  it("for a deletion deletes once, then closes", async () => {
    const deleted: Array<() => void> = []
    const Deleting = () => {
      const [open, setOpen] = useState(true)
      return open
        ? (
          <DeleteDialog
            name={"a-name-without-an-end".repeat(20)}
            onClose={() => setOpen(false)}
            onDelete={() => new Promise<void>((resolve) => deleted.push(resolve))}
          />
        )
        : <p>Closed.</p>
    }
    draw(<Deleting />)
    await expect.element(page.getByRole("dialog", { name: /^Delete a-name-without-an-end/ })).toBeVisible()
    const dialog = page.getByRole("dialog").element()
    assert.isAtMost(dialog.scrollWidth, dialog.clientWidth)
    await expect.element(button("Cancel")).toHaveFocus()
    await button("Delete").click()
    await expect.element(button("Delete")).toBeDisabled()
    assert.strictEqual(deleted.length, 1)
    deleted[0]!()
    await expect.element(page.getByText("Closed.")).toBeVisible()
  })
})
