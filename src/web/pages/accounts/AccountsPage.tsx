/**
 * The accounts of the pool: find, change, test, add and delete them, one or many at once.
 */
import * as AsyncResult from "effect/reactivity/AsyncResult"
import { useMemo, useState } from "preact/hooks"
import { AccountBadge, type AccountState, accountStates } from "../../parts/Badge.tsx"
import { DeleteDialog, FormDialog } from "../../parts/Dialog.tsx"
import { Search, Select, TextField } from "../../parts/Form.tsx"
import { number } from "../../parts/format.ts"
import { Heading } from "../../parts/Heading.tsx"
import { Loaded } from "../../parts/Loaded.tsx"
import { numbers, Pager, RowButton, Table } from "../../parts/Table.tsx"
import { act, attempt } from "../../state/actions.ts"
import { type AccountItem, Admin } from "../../state/client.ts"
import { receivedAtom } from "../../state/live.ts"
import { accountName } from "../../state/names.ts"
import { useTexts } from "../../state/preferences.ts"
import { registry, useAtom } from "../../state/registry.ts"
import { useSeveralUpstreams } from "../../state/upstreams.ts"
import { DurabilityNotice } from "../configuration.tsx"
import { AddAccounts } from "./AddAccounts.tsx"
import { progressAtom, runTests, stopTests } from "./tests.ts"

const pageSize = 50
const changedBy = ["accounts", "config", "host"] as const

type Action = "toggle" | "test" | "note" | "sessions" | "delete"

const Row = ({ busy, isSeveral, item: listed, listedAt, onAction, onSelect, selected }: {
  readonly item: AccountItem
  /** When the list was read, in milliseconds of the page's clock. */
  readonly listedAt: number
  /** Several upstreams have accounts. */
  readonly isSeveral: boolean
  readonly selected: boolean
  /** A change of this account is under way. */
  readonly busy: boolean
  readonly onSelect: (selected: boolean) => void
  readonly onAction: (action: Action) => void
}) => {
  const { accounts: t, common } = useTexts()
  const received = useAtom(receivedAtom).get(accountName(listed))
  const { at, item } = received !== undefined && received.at > listedAt ? received : { at: listedAt, item: listed }
  const id = accountName(item)
  const button = (action: Action, text: string, name?: string) => (
    <RowButton
      text={text}
      of={id}
      name={name}
      danger={action === "delete"}
      disabled={busy}
      onClick={() => onAction(action)}
    />
  )
  return (
    <tr>
      <td class="select">
        <input
          type="checkbox"
          aria-label={common.actionOn(t.selectColumn, id)}
          checked={selected}
          onChange={(event) => onSelect(event.currentTarget.checked)}
        />
      </td>
      <th scope="row" class="text">
        {item.identifier}
        {item.note !== "" && <p class="hint">{item.note}</p>}
      </th>
      {isSeveral && <td>{item.upstream}</td>}
      <td>
        <AccountBadge item={item} receivedAt={at} />
      </td>
      <td class="number">{number(item.in_use)}</td>
      <td class="tools">
        {button("toggle", item.disabled ? t.enable : t.disable)}
        {button("test", t.test)}
        {button("note", t.note, t.noteOf(id))}
        {button("sessions", t.clear, t.clearOf(id))}
        {button("delete", t.delete)}
      </td>
    </tr>
  )
}

const NoteDialog = ({ item, onClose }: {
  readonly item: AccountItem
  readonly onClose: () => void
}) => {
  const t = useTexts().accounts
  const { note } = item
  const identifier = accountName(item)
  return (
    <FormDialog
      name={t.noteOf(identifier)}
      onClose={onClose}
      onSave={(read) =>
        attempt(
          (client) => client["admin-accounts"].patch({ params: { identifier }, payload: { note: read("note") } }),
          { done: t.noteSaved(identifier), subjects: changedBy }
        )}
    >
      <TextField label={t.note} name="note" maxLength={200} defaultValue={note} />
    </FormDialog>
  )
}

const Tests = () => {
  const t = useTexts().accounts
  const progress = useAtom(progressAtom)
  if (progress === undefined) return null
  const { failed, passed, total } = progress
  const done = passed + failed
  return (
    <div class="progress">
      <progress aria-label={t.tests} max={Math.max(1, total)} value={done} />
      <span>{t.testsSoFar(done, total, failed)}</span>
      <button type="button" onClick={stopTests}>{t.stopTests}</button>
    </div>
  )
}

interface Filter {
  readonly page: number
  readonly q: string
  readonly state: AccountState | ""
  readonly upstream: string
}

type Open =
  | { readonly name: "add" }
  | { readonly name: "note"; readonly item: AccountItem }
  | { readonly name: "delete"; readonly identifiers: ReadonlyArray<string> }

/** The accounts, at first those of the upstream `of`. */
export const Accounts = ({ of = "" }: { readonly of: string | undefined }) => {
  const { accounts: t, addAccounts, common, states } = useTexts()
  const [filter, setFilter] = useState<Filter>({ page: 1, q: "", state: "", upstream: of })
  const several = useSeveralUpstreams()
  const isSeveral = several.length > 0
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  const [open, setOpen] = useState<Open>()
  const [busy, setBusy] = useState<ReadonlySet<string>>(new Set())
  const testing = useAtom(progressAtom) !== undefined

  const narrow = (change: Partial<Filter>) => setFilter((now) => ({ ...now, page: 1, ...change }))
  const list = useMemo(() => {
    const { page, q, state, upstream } = filter
    const query = {
      page,
      page_size: pageSize,
      ...(q === "" ? {} : { q }),
      ...(state === "" ? {} : { state }),
      ...(upstream === "" ? {} : { upstream })
    }
    return Admin.query("admin-accounts", "list", { query, reactivityKeys: ["accounts"] })
  }, [filter])

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
      { done: ({ changed, failed }) => t.batchDone(action, changed, failed), subjects: changedBy }
    )
    if (reply !== undefined) select(identifiers, false)
  }

  const change = async (item: AccountItem, action: Action) => {
    const identifier = accountName(item)
    if (action === "note") return setOpen({ name: "note", item })
    if (action === "delete") return setOpen({ name: "delete", identifiers: [identifier] })
    if (action === "test" && testing) return
    setBusy((now) => new Set([...now, identifier]))
    if (action === "test") await runTests([identifier])
    if (action === "sessions") {
      await act((client) => client["admin-accounts"].deleteSessions({ payload: { identifier } }), {
        done: ({ note }) => note ?? t.cleared(identifier)
      })
    }
    if (action === "toggle") {
      await act(
        (client) => client["admin-accounts"].patch({ params: { identifier }, payload: { disabled: !item.disabled } }),
        {
          done: ({ account }) => account.disabled ? t.disabled(identifier) : t.enabled(identifier),
          subjects: changedBy
        }
      )
    }
    return setBusy((now) => new Set([...now].filter((each) => each !== identifier)))
  }

  const close = () => setOpen(undefined)
  const chosen = [...selected]
  const none = chosen.length === 0
  return (
    <>
      <Heading name={common.pages.accounts}>
        <button type="button" disabled={testing} onClick={() => void runTests("all")}>{t.testAll}</button>
        <button type="button" class="primary" onClick={() => setOpen({ name: "add" })}>{addAccounts.title}</button>
      </Heading>
      <DurabilityNotice />
      <div class="row">
        <Search label={t.search} onSearch={(q) => narrow({ q })} />
        <Select<AccountState | "">
          label={t.show}
          value={filter.state}
          options={[["", t.all], ...accountStates.map((each) => [each, states[each]] as const)]}
          onValue={(state) => narrow({ state })}
        />
        {(isSeveral || filter.upstream !== "") && (
          <Select
            label={t.upstream}
            value={filter.upstream}
            options={[...new Set(["", ...several, filter.upstream])].map((each) => [each, each || t.all])}
            onValue={(upstream) => narrow({ upstream })}
          />
        )}
      </div>
      <div class="actions">
        <button type="button" disabled={none} onClick={() => void batch("disable", chosen)}>
          {t.disableSelected}
        </button>
        <button type="button" disabled={none} onClick={() => void batch("enable", chosen)}>
          {t.enableSelected}
        </button>
        <button type="button" disabled={none || testing} onClick={() => void runTests(chosen)}>
          {t.testSelected}
        </button>
        <button
          type="button"
          class="danger"
          disabled={none}
          onClick={() => setOpen({ name: "delete", identifiers: chosen })}
        >
          {t.deleteSelected}
        </button>
        {!none && (
          <>
            <span class="hint">{t.selected(chosen.length)}</span>
            <button type="button" class="quiet" onClick={() => setSelected(new Set())}>{t.clearSelection}</button>
          </>
        )}
      </div>
      <Tests />
      <Loaded atom={list}>
        {(accounts, waiting) => {
          const shown = accounts.items.map(accountName)
          const allSelected = shown.length > 0 && shown.every((identifier) => selected.has(identifier))
          const result = registry.get(list)
          const listedAt = AsyncResult.isSuccess(result) ? result.timestamp : 0
          return (
            <>
              <Table
                name={common.pages.accounts}
                busy={waiting}
                columns={[
                  {
                    name: t.selectColumn,
                    content: (
                      <input
                        type="checkbox"
                        aria-label={t.selectPage}
                        disabled={shown.length === 0}
                        checked={allSelected}
                        onChange={(event) => select(shown, event.currentTarget.checked)}
                      />
                    )
                  },
                  t.account,
                  ...(isSeveral ? [t.upstream] : []),
                  t.state,
                  ...numbers(t.inUse),
                  { name: t.actions, hidden: true }
                ]}
                rows={accounts.items.length}
                empty={filter.q === "" && filter.state === "" && filter.upstream === "" ? t.empty : t.noneFound}
              >
                {accounts.items.map((item) => {
                  const name = accountName(item)
                  return (
                    <Row
                      key={name}
                      item={item}
                      listedAt={listedAt}
                      isSeveral={isSeveral}
                      selected={selected.has(name)}
                      busy={busy.has(name)}
                      onSelect={(on) => select([name], on)}
                      onAction={(action) => void change(item, action)}
                    />
                  )
                })}
              </Table>
              <Pager
                page={filter.page}
                shown={accounts.page}
                pages={accounts.total_pages}
                total={t.total(accounts.total)}
                onPage={(page) => narrow({ page })}
              />
            </>
          )
        }}
      </Loaded>
      {open?.name === "add" && <AddAccounts upstreams={several} upstream={filter.upstream} onClose={close} />}
      {open?.name === "note" && <NoteDialog item={open.item} onClose={close} />}
      {open?.name === "delete" && (
        <DeleteDialog
          name={open.identifiers.length === 1 ? open.identifiers[0]! : t.count(open.identifiers.length)}
          onClose={close}
          onDelete={() => batch("delete", open.identifiers)}
        >
          {t.deleteAsk}
        </DeleteDialog>
      )}
    </>
  )
}
