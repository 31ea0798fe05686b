/**
 * The accounts of the pool: find, change, test, add and delete them, one or many at once.
 */
import * as Exit from "effect/Exit"
import * as AsyncResult from "effect/reactivity/AsyncResult"
import { useEffect, useMemo, useRef, useState } from "preact/hooks"
import { DeleteDialog, Dialog } from "../../parts/Dialog.tsx"
import { Heading } from "../../parts/Heading.tsx"
import { Loaded } from "../../parts/Loaded.tsx"
import { Pager } from "../../parts/Pager.tsx"
import { Select } from "../../parts/Select.tsx"
import type { AccountState } from "../../parts/State.tsx"
import { states } from "../../parts/State.tsx"
import { Table } from "../../parts/Table.tsx"
import { act, call, reload, tell } from "../../state/actions.ts"
import { Admin } from "../../state/client.ts"
import { causeText } from "../../state/failure.ts"
import { useTexts } from "../../state/preferences.ts"
import { registry, useAtom } from "../../state/registry.ts"
import type { AccountItem, Accounts as AccountList } from "../../state/types.ts"
import { Durability } from "../Durability.tsx"
import { AddAccounts } from "./AddAccounts.tsx"
import type { RowAction } from "./Row.tsx"
import { Row } from "./Row.tsx"
import { progressAtom, runTests, stopTests } from "./tests.ts"

const pageSize = 50
const changedBy = ["accounts", "config", "host"] as const

const NoteDialog = ({ item, onClose }: { readonly item: AccountItem; readonly onClose: () => void }) => {
  const t = useTexts()
  const field = useRef<HTMLInputElement>(null)
  const [failure, setFailure] = useState<string>()
  const [busy, setBusy] = useState(false)
  const save = async (event: Event) => {
    event.preventDefault()
    setBusy(true)
    setFailure(undefined)
    const exit = await call((client) =>
      client["admin-accounts"].patch({
        params: { identifier: item.identifier },
        payload: { note: field.current?.value ?? "" }
      })
    )
    setBusy(false)
    // In the dialog: what stands beside one that is open is out of reach.
    if (Exit.isFailure(exit)) return setFailure(causeText(exit.cause))
    reload(...changedBy)
    tell(t.accounts.noteSaved(item.identifier))
    return onClose()
  }
  return (
    <Dialog name={t.accounts.noteOf(item.identifier)} onClose={onClose}>
      <form class="stack" onSubmit={(event) => void save(event)}>
        <label class="field">
          <span>{t.accounts.note}</span>
          <input ref={field} maxLength={200} defaultValue={item.note} />
        </label>
        {failure === undefined ? null : <p class="notice bad" role="alert">{failure}</p>}
        <div class="actions end">
          <button type="button" onClick={onClose}>{t.common.cancel}</button>
          <button type="submit" class="primary" disabled={busy}>{t.common.save}</button>
        </div>
      </form>
    </Dialog>
  )
}

const Tests = () => {
  const t = useTexts()
  const progress = useAtom(progressAtom)
  if (progress === undefined) return null
  const done = progress.passed + progress.failed
  return (
    <div class="progress">
      <progress
        aria-label={t.accounts.tests}
        max={Math.max(1, progress.total)}
        value={done}
      />
      <span>{t.accounts.testsSoFar(done, progress.total, progress.failed)}</span>
      <button type="button" onClick={stopTests}>{t.accounts.stopTests}</button>
    </div>
  )
}

/** The field by itself, so that typing draws no list anew: it is asked for when one pauses. */
const Search = ({ onSearch }: { readonly onSearch: (text: string) => void }) => {
  const t = useTexts().accounts
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  useEffect(() => () => clearTimeout(timer.current), [])
  return (
    <label class="field grow">
      <span>{t.search}</span>
      <input
        type="text"
        onInput={({ currentTarget: { value } }) => {
          clearTimeout(timer.current)
          timer.current = setTimeout(() => onSearch(value.trim()), 200)
        }}
      />
    </label>
  )
}

type Open =
  | { readonly name: "add" }
  | { readonly name: "note"; readonly item: AccountItem }
  | { readonly name: "delete"; readonly identifiers: ReadonlyArray<string> }

export const Accounts = () => {
  const t = useTexts()
  const [page, setPage] = useState(1)
  const [q, setQ] = useState("")
  const [state, setState] = useState<AccountState | "">("")
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  const [open, setOpen] = useState<Open>()
  const [busy, setBusy] = useState<ReadonlySet<string>>(new Set())
  const testing = useAtom(progressAtom) !== undefined

  const list = useMemo(
    () =>
      Admin.query("admin-accounts", "list", {
        query: { page, page_size: pageSize, ...(q === "" ? {} : { q }), ...(state === "" ? {} : { state }) },
        reactivityKeys: ["accounts"]
      }),
    [page, q, state]
  )

  const select = (identifiers: ReadonlyArray<string>, on: boolean) =>
    setSelected((now) => {
      const next = new Set(now)
      for (const identifier of identifiers) {
        if (on) next.add(identifier)
        else next.delete(identifier)
      }
      return next
    })

  const batch = async (action: "enable" | "disable" | "delete", identifiers: ReadonlyArray<string>) => {
    const reply = await act(
      (client) => client["admin-accounts"].batch({ payload: { action, identifiers } }),
      { done: ({ changed, failed }) => t.accounts.batchDone(action, changed, failed), subjects: changedBy }
    )
    if (reply !== undefined) select(identifiers, false)
  }

  const change = async (item: AccountItem, action: RowAction) => {
    const { identifier } = item
    if (action === "note") return setOpen({ name: "note", item })
    if (action === "delete") return setOpen({ name: "delete", identifiers: [identifier] })
    if (action === "test" && testing) return
    setBusy((now) => new Set([...now, identifier]))
    if (action === "test") await runTests([identifier])
    if (action === "sessions") {
      await act((client) => client["admin-accounts"].deleteSessions({ payload: { identifier } }), {
        done: ({ note }) => note ?? t.accounts.cleared(identifier)
      })
    }
    if (action === "toggle") {
      await act(
        (client) => client["admin-accounts"].patch({ params: { identifier }, payload: { disabled: !item.disabled } }),
        {
          done: ({ account }) => account.disabled ? t.accounts.disabled(identifier) : t.accounts.enabled(identifier),
          subjects: changedBy
        }
      )
    }
    return setBusy((now) => new Set([...now].filter((each) => each !== identifier)))
  }

  const chosen = [...selected]
  const none = chosen.length === 0
  return (
    <>
      <Heading name={t.common.pages.accounts}>
        <button type="button" disabled={testing} onClick={() => void runTests("all")}>{t.accounts.testAll}</button>
        <button type="button" class="primary" onClick={() => setOpen({ name: "add" })}>{t.addAccounts.title}</button>
      </Heading>
      <Durability />
      <div class="row">
        <Search
          onSearch={(text) => {
            setQ(text)
            setPage(1)
          }}
        />
        <Select
          label={t.accounts.show}
          value={state}
          options={[["", t.accounts.all], ...states.map((each) => [each, t.states[each]] as const)]}
          onValue={(value) => {
            setState(value as AccountState | "")
            setPage(1)
          }}
        />
      </div>
      <div class="actions">
        <button type="button" disabled={none} onClick={() => void batch("disable", chosen)}>
          {t.accounts.disableSelected}
        </button>
        <button type="button" disabled={none} onClick={() => void batch("enable", chosen)}>
          {t.accounts.enableSelected}
        </button>
        <button type="button" disabled={none || testing} onClick={() => void runTests(chosen)}>
          {t.accounts.testSelected}
        </button>
        <button
          type="button"
          class="danger"
          disabled={none}
          onClick={() => setOpen({ name: "delete", identifiers: chosen })}
        >
          {t.accounts.deleteSelected}
        </button>
        {none ? null : (
          <>
            <span class="hint">{t.accounts.selected(chosen.length)}</span>
            <button type="button" class="quiet" onClick={() => setSelected(new Set())}>
              {t.accounts.clearSelection}
            </button>
          </>
        )}
      </div>
      <Tests />
      <Loaded atom={list}>
        {(accounts: AccountList, waiting) => {
          const shown = accounts.items.map((item) => item.identifier)
          const allSelected = shown.length > 0 && shown.every((identifier) => selected.has(identifier))
          const result = registry.get(list)
          const listedAt = AsyncResult.isSuccess(result) ? result.timestamp : 0
          return (
            <>
              <Table
                name={t.common.pages.accounts}
                busy={waiting}
                columns={[
                  {
                    name: t.accounts.selectColumn,
                    content: (
                      <input
                        type="checkbox"
                        aria-label={t.accounts.selectPage}
                        disabled={shown.length === 0}
                        checked={allSelected}
                        onChange={(event) => select(shown, event.currentTarget.checked)}
                      />
                    )
                  },
                  { name: t.accounts.account },
                  { name: t.accounts.state },
                  { name: t.accounts.inUse, number: true },
                  { name: t.accounts.actions, hidden: true }
                ]}
                rows={accounts.items.length}
                empty={q === "" && state === "" ? t.accounts.empty : t.accounts.noneFound}
              >
                {accounts.items.map((item) => (
                  <Row
                    key={item.identifier}
                    item={item}
                    listedAt={listedAt}
                    selected={selected.has(item.identifier)}
                    busy={busy.has(item.identifier)}
                    onSelect={(on) => select([item.identifier], on)}
                    onAction={(action) => void change(item, action)}
                  />
                ))}
              </Table>
              <Pager
                page={page}
                shown={accounts.page}
                pages={accounts.total_pages}
                total={t.accounts.total(accounts.total)}
                onPage={setPage}
              />
            </>
          )
        }}
      </Loaded>
      {open?.name === "add" ? <AddAccounts onClose={() => setOpen(undefined)} /> : null}
      {open?.name === "note" ? <NoteDialog item={open.item} onClose={() => setOpen(undefined)} /> : null}
      {open?.name === "delete"
        ? (
          <DeleteDialog
            name={open.identifiers.length === 1 ? open.identifiers[0]! : t.accounts.count(open.identifiers.length)}
            onClose={() => setOpen(undefined)}
            onDelete={() => batch("delete", open.identifiers)}
          >
            {t.accounts.deleteAsk}
          </DeleteDialog>
        )
        : null}
    </>
  )
}
