/**
 * The accounts of the pool: find, change, test, add and delete them, one or many together.
 */
import * as Option from "effect/Option"
import * as AsyncResult from "effect/reactivity/AsyncResult"
import { useContext, useMemo, useRef, useState } from "preact/hooks"
import { accountSigns, accountStates } from "../../parts/Badge.tsx"
import { Chip } from "../../parts/Card.tsx"
import { ChangeButton, useLock } from "../../parts/configuration.tsx"
import { DeleteDialog } from "../../parts/Dialog.tsx"
import { Empty } from "../../parts/Empty.tsx"
import { PressButton, Search, Select } from "../../parts/Form.tsx"
import { number } from "../../parts/format.ts"
import { Heading } from "../../parts/Heading.tsx"
import { Sign } from "../../parts/Icon.tsx"
import { useLayout } from "../../parts/layout.ts"
import { Loaded } from "../../parts/Loaded.tsx"
import { ReadContext, useStill } from "../../parts/still.ts"
import { Pager, Table, useOrder } from "../../parts/Table.tsx"
import { act } from "../../state/actions.ts"
import type { AccountItem, Reply } from "../../state/client.ts"
import { useReread } from "../../state/live.ts"
import { accountName, defaultUpstream } from "../../state/names.ts"
import { readOf } from "../../state/reads.ts"
import { registry, useAtom, useValue } from "../../state/registry.ts"
import { choose, useQuery } from "../../state/route.ts"
import { useTexts } from "../../state/texts.ts"
import {
  type UpstreamItem,
  upstreamsAtom,
  useSeveralUpstreams,
  useUpstreamsWithOrganizations
} from "../../state/upstreams.ts"
import { AccountPage } from "./AccountPage.tsx"
import { AccountRow, type Action } from "./AccountRow.tsx"
import { AddAccounts } from "./AddAccounts.tsx"
import { changedBy, MarkDialog, SecretDialog, secretOf, SessionsDialog } from "./dialogs.tsx"
import { progressAtom, runTests } from "./tests.ts"
import { Tests } from "./Tests.tsx"

const pageSize = 50

type AccountList = Reply<"admin-accounts", "list">

/** What the list can be sorted by, beside its own order. */
const sorts = ["identifier", "upstream", "in_use", "requests_hour", "last_used_at"] as const

/** The states, which add up to all accounts; and last those whose test failed, in whatever state. */
const facets = ["", ...accountStates, "failed"] as const

/** The states, each with how many accounts it has. */
const Facets = ({ chosen, counts }: {
  readonly chosen: string
  readonly counts: AccountList["counts"]
}) => {
  const { accounts: t, states } = useTexts()
  return (
    <div class="actions" role="group" aria-label={t.show}>
      {facets.map((state) => (
        <Chip
          key={state}
          class={state === "failed" ? "apart" : ""}
          pressed={chosen === state}
          onClick={() => choose({ state, page: "" })}
        >
          {state !== "" && (
            <span class={`sign ${accountSigns[state].tone}`}>
              <Sign of={accountSigns[state].sign} />
            </span>
          )}
          <span>{state === "" ? t.all : states[state]}</span>
          <strong>{counts === undefined ? "" : number(counts[state === "" ? "all" : state])}</strong>
        </Chip>
      ))}
    </div>
  )
}

/** What an empty list says: what accounts are for, whether the gateway answers without any, and what to do next. */
const Nothing = ({ onAdd }: { readonly onAdd: () => void }) => {
  const { accounts: t, addAccounts } = useTexts()
  const upstreams = Option.getOrUndefined(AsyncResult.value(useAtom(upstreamsAtom)))?.upstreams ?? []
  const serving = upstreams.filter(({ accounts, enabled }) => enabled && accounts.ready > 0)
  return (
    <Empty action={addAccounts.title} onAction={onAdd}>
      {serving.length === 0
        ? t.empty
        : serving.every(({ driver }) => driver === "embedded")
        ? t.emptyBuiltIn
        : t.emptyServed}
    </Empty>
  )
}

/** Which accounts are chosen, of those that `view` shows. */
interface Selection {
  readonly view: string
  readonly names: ReadonlySet<string>
}

type Open =
  | { readonly name: "note" | "organization" | "secret" | "sessions"; readonly item: AccountItem }
  | { readonly name: "delete"; readonly items: ReadonlyArray<AccountItem> }

const List = ({ accounts, isSeveral, listedAt, onAdd, page, view, waiting }: {
  readonly accounts: AccountList
  readonly onAdd: () => void
  /** When the list was read, in milliseconds of the page's clock; `undefined` while it is the list of another view. */
  readonly listedAt: number | undefined
  readonly isSeveral: boolean
  readonly page: number
  /** Everything that the list is chosen by. */
  readonly view: string
  readonly waiting: boolean
}) => {
  const { accounts: t, common } = useTexts()
  const isCards = useLayout() === "cards"
  const { q = "", state = "", upstream = "" } = useQuery()
  const [selection, setSelection] = useState<Selection>({ view, names: new Set() })
  const [open, setOpen] = useState<Open>()
  const [busy, setBusy] = useState<ReadonlySet<string>>(new Set())
  const testing = useAtom(progressAtom) !== undefined
  const withOrganizations = useUpstreamsWithOrganizations()
  const selected: ReadonlySet<string> = selection.view === view ? selection.names : new Set()
  // What is chosen stands for what is shown: rows that hold still are of the list itself.
  const still = useStill<AccountItem, HTMLTableSectionElement>(accounts.items, accountName, [useContext(ReadContext)])
  const { shown, take } = still
  const chosen = shown.filter((item) => selected.has(accountName(item)))
  const hasCredentials = shown.some(({ credential }) => credential !== undefined)
  const allSelected = shown.length > 0 && chosen.length === shown.length

  const select = (items: ReadonlyArray<AccountItem>, on: boolean) =>
    setSelection((now) => {
      const names = new Set(now.view === view ? now.names : [])
      for (const name of items.map(accountName)) {
        if (on) names.add(name)
        else names.delete(name)
      }
      return { view, names }
    })

  const batch = async (
    action: "enable" | "disable" | "delete",
    items: ReadonlyArray<AccountItem>,
    isUndone = false
  ): Promise<void> => {
    const changing = items.filter(({ disabled }) => action === "delete" || disabled === (action === "enable"))
    const names = (action === "delete" ? items : changing).map(accountName)
    const opposite = action === "enable" ? "disable" : "enable"
    const after = changing.map((item) => ({ ...item, disabled: action === "disable" }))
    const reply = await act(
      (client) => client["admin-accounts"].batch({ payload: { action, identifiers: names } }),
      {
        done: ({ changed, failed }) =>
          names.length === 1 && failed === 0 && action !== "delete"
            ? t[action === "disable" ? "disabled" : "enabled"](names[0]!)
            : t.batchDone(action, changed, failed),
        ...(action === "delete" || isUndone || changing.length === 0
          ? {}
          : { undo: () => void batch(opposite, after, true) }),
        subjects: changedBy
      }
    )
    if (reply === undefined) return
    select(items, false)
    if (action === "delete") take()
  }

  const change = async (action: Action, item: AccountItem) => {
    if (action === "note" || action === "organization" || action === "secret" || action === "sessions") {
      return setOpen({ name: action, item })
    }
    if (action === "delete") return setOpen({ name: "delete", items: [item] })
    const name = accountName(item)
    setBusy((now) => new Set([...now, name]))
    if (action === "test") await runTests([name])
    else await batch(item.disabled ? "enable" : "disable", [item])
    return setBusy((now) => new Set([...now].filter((each) => each !== name)))
  }

  const close = () => setOpen(undefined)
  const secret = open?.name === "secret" ? secretOf(open.item) : undefined
  const deleting = open?.name === "delete" ? open.items : []
  const running = deleting.reduce((sum, { in_use }) => sum + in_use, 0)
  const lock = useLock()
  const bulk = (action: string, onClick: () => void, disabled: boolean | string | undefined, kind = "") => (
    <PressButton class={`quiet ${kind}`} disabled={disabled} onClick={onClick}>
      {common.actionOn(action, number(chosen.length))}
    </PressButton>
  )
  return (
    <>
      <div class={`accounts ${isSeveral ? "several" : ""}`}>
        <Table
          name={common.pages.accounts}
          busy={waiting}
          still={still}
          columns={[
            {
              name: t.selectColumn,
              width: isCards ? "2.4rem" : "2.9rem",
              class: "select",
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
            { name: t.account, rank: 1, sort: "identifier", width: isSeveral ? "17.5rem" : "20rem" },
            ...(isSeveral
              ? [{ name: t.upstream, rank: isCards ? 1 : 2, sort: "upstream", width: "6rem" } as const]
              : []),
            { name: t.stateAndError, rank: 1 },
            ...(hasCredentials ? [{ name: t.credential, rank: 4, width: "11rem" } as const] : []),
            { name: t.slots, rank: 2, sort: "in_use", width: "4.8rem", number: true },
            { name: t.lastHour, rank: 3, sort: "requests_hour", width: "6rem", number: true },
            { name: t.success, rank: 3, width: "5rem", number: true },
            { name: t.lastUsed, rank: 4, sort: "last_used_at", first: "desc", width: "7rem", class: "nowrap" },
            { name: t.actions, hidden: true, width: isCards ? "2.6rem" : "3.2rem", class: "tools" }
          ]}
          rows={shown.length}
          empty={q === "" && state === "" && upstream === "" ? <Nothing onAdd={onAdd} /> : t.noneFound}
          bulk={chosen.length === 0 ?
            undefined :
            (
              <div class="bulk-actions" role="group" aria-label={t.selected(chosen.length)}>
                <span class="nowrap" role="status">{t.selected(chosen.length)}</span>
                {bulk(t.enable, () => void batch("enable", chosen), lock ?? chosen.every(({ disabled }) => !disabled))}
                {bulk(t.disable, () => void batch("disable", chosen), lock ?? chosen.every(({ disabled }) => disabled))}
                {bulk(t.test, () => void runTests(chosen.map(accountName)), testing)}
                {bulk(t.delete, () => setOpen({ name: "delete", items: chosen }), lock, "danger apart")}
                <button type="button" class="quiet" onClick={() => select(chosen, false)}>{t.clearSelection}</button>
              </div>
            )}
        >
          {shown.map((item) => {
            const name = accountName(item)
            return (
              <AccountRow
                key={name}
                item={item}
                listedAt={listedAt ?? 0}
                isSeveral={isSeveral}
                hasCredentials={hasCredentials}
                hasOrganizations={withOrganizations.has(item.upstream ?? defaultUpstream)}
                selected={selected.has(name)}
                busy={busy.has(name)}
                testing={testing}
                onSelect={(on) => select([item], on)}
                onAction={(action, newest) => void change(action, newest)}
              />
            )
          })}
        </Table>
      </div>
      {accounts.total > 0 && (
        <Pager
          page={page}
          shown={accounts.page}
          pages={accounts.total_pages}
          total={t.total(accounts.total)}
          onPage={(next) => choose({ page: next === 1 ? "" : String(next) })}
        />
      )}
      {(open?.name === "note" || open?.name === "organization") && (
        <MarkDialog item={open.item} mark={open.name} onClose={close} />
      )}
      {open?.name === "secret" && secret !== undefined && (
        <SecretDialog item={open.item} secret={secret} onClose={close} />
      )}
      {open?.name === "sessions" && <SessionsDialog item={open.item} onClose={close} />}
      {open?.name === "delete" && (
        <DeleteDialog
          name={deleting.length === 1 ? accountName(deleting[0]!) : t.count(deleting.length)}
          items={deleting.map(accountName)}
          onClose={close}
          onDelete={() => batch("delete", deleting)}
        >
          {t.deleteAsk(deleting.length, running)}
        </DeleteDialog>
      )}
    </>
  )
}

/** The list of accounts, or the page of the account named `of`. */
export const Accounts = ({ of }: { readonly of: string | undefined }) =>
  of === undefined ? <AccountsList /> : <AccountPage key={of} name={of} />

/** How much an upstream needs accounts: most where it cannot answer without any and has none that is ready, least where it is disabled. */
const needOf = (upstreams: ReadonlyArray<UpstreamItem>, name: string): number => {
  const found = upstreams.find((each) => each.name === name)
  if (found === undefined || !found.enabled) return 0
  return found.needs_accounts ? found.accounts.ready === 0 ? 3 : 2 : 1
}

const AccountsList = () => {
  const { accounts: t, addAccounts, common } = useTexts()
  const { page: asked = "1", q = "", state = "", upstream = "" } = useQuery()
  const several = useSeveralUpstreams()
  const upstreams = useValue(upstreamsAtom)?.upstreams ?? []
  const byNeed = several.toSorted((a, b) => needOf(upstreams, b) - needOf(upstreams, a))
  const [isAdding, setAdding] = useState(false)
  const testing = useAtom(progressAtom) !== undefined
  const page = Math.max(1, Math.trunc(Number(asked)) || 1)
  const shownState = facets.find((each) => each === state) ?? ""
  const order = useOrder(sorts)
  const view = JSON.stringify([page, q, shownState, upstream, order])
  const list = useMemo(
    () =>
      readOf("admin-accounts", "list", {
        query: { page, page_size: pageSize, q, state: shownState, upstream, ...order ?? { sort: "state" } },
        reactivityKeys: ["accounts"]
      }),
    [view]
  )
  // Only the list's own order has the counts of the states.
  const counted = useMemo(
    () =>
      order === undefined
        ? list
        : readOf("admin-accounts", "list", {
          query: { page: 1, page_size: 1, q, state: shownState, upstream, sort: "state" },
          reactivityKeys: ["accounts"]
        }),
    [view]
  )
  useReread(list)
  const counts = useValue(counted)?.counts
  const isNothing = counts?.all === 0 && q === "" && upstream === ""
  const known = useRef(counts)
  known.current = counts ?? known.current
  return (
    <>
      <Heading name={common.pages.accounts}>
        {!isNothing && <PressButton disabled={testing} onClick={() => void runTests("all")}>{t.testAll}</PressButton>}
        <ChangeButton class="primary" onClick={() => setAdding(true)}>{addAccounts.title}</ChangeButton>
      </Heading>
      <Tests />
      {!isNothing && (
        <div class="row">
          <Search label={t.search} value={q} onSearch={(text) => choose({ q: text, page: "" })} />
          {(several.length > 0 || upstream !== "") && (
            <Select
              label={t.upstream}
              value={upstream}
              options={[...new Set(["", ...several, upstream])].map((each) => [each, each || t.all])}
              onValue={(next) => choose({ upstream: next, page: "" })}
            />
          )}
        </div>
      )}
      {!isNothing && <Facets chosen={shownState} counts={known.current} />}
      <Loaded atom={list} rows={12}>
        {(accounts, waiting) => {
          const result = registry.get(list)
          return (
            <List
              accounts={accounts}
              listedAt={AsyncResult.isSuccess(result) ? result.timestamp : undefined}
              isSeveral={several.length > 0}
              page={page}
              view={view}
              onAdd={() => setAdding(true)}
              waiting={waiting}
            />
          )
        }}
      </Loaded>
      {isAdding && <AddAccounts upstreams={byNeed} upstream={upstream} onClose={() => setAdding(false)} />}
    </>
  )
}
