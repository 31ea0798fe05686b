/**
 * Business keys, which callers present to be served from the pool, what each key allows, and what it has used.
 */
import { useMemo, useState } from "preact/hooks"
import { useFields } from "../../forms/Entry.tsx"
import { ChangeButton } from "../../parts/configuration.tsx"
import { Empty } from "../../parts/Empty.tsx"
import { Search, Select } from "../../parts/Form.tsx"
import { number } from "../../parts/format.ts"
import { Heading } from "../../parts/Heading.tsx"
import { useLayout } from "../../parts/layout.ts"
import { Loaded } from "../../parts/Loaded.tsx"
import { RowMenu } from "../../parts/Menu.tsx"
import { Pager, Row, Table, useOrder } from "../../parts/Table.tsx"
import { Ago } from "../../parts/Time.tsx"
import { Money } from "../../parts/Values.tsx"
import { copyText } from "../../state/actions.ts"
import { useCurrency } from "../../state/currency.ts"
import { useReread } from "../../state/live.ts"
import { readOf } from "../../state/reads.ts"
import { useValue } from "../../state/registry.ts"
import { choose, linkTo, useQuery } from "../../state/route.ts"
import { useTexts } from "../../state/texts.ts"
import { useAcceptedKeys } from "../configuration.tsx"
import { FirstRun } from "./Access.tsx"
import { HashKeys } from "./HashKeys.tsx"
import { EditKey, NewKey, RotateKey } from "./KeyForm.tsx"
import { KeyPage } from "./KeyPage.tsx"
import { DeleteKey, KeyState, requestsOf, setDisabled, Tightest } from "./KeyParts.tsx"
import { type KeyItem, keyOfId } from "./keys.ts"

const pageSize = 50
const noKeys: ReadonlyArray<string> = []
const states = ["active", "disabled", "expired"] as const

/** Pixels of the window from which a row has room for every column. */
const wideFrom = 1300

/** What the list can be sorted by. */
const sorts = [
  "name",
  "state",
  "limit_share",
  "in_flight",
  "requests_today",
  "cost_today",
  "last_used_at"
] as const

type Action = "edit" | "rotate" | "toggle" | "delete"

const KeyRow = ({ currency, item, onAction, value }: {
  readonly currency: string | undefined
  readonly item: KeyItem
  /** The key itself, if the page knows it. */
  readonly value: string | undefined
  readonly onAction: (action: Action) => void
}) => {
  const t = useTexts().keys
  const [shown, setShown] = useState(false)
  const { id, preview, usage } = item
  const name = item.name ?? preview
  const isUnknown = value === undefined
  // Whose a key is stands in place of its preview, where there is no room for both: the page of the key has it.
  const layout = useLayout(wideFrom)
  const [isCards, isWide] = [layout === "cards", layout === "wide"]
  const note = item.note !== null && !shown && <span class="hint rest" title={item.note}>{item.note}</span>
  const code = (
    <code class={item.name === null || shown ? "" : "hint"} title={t.idOf(id)}>
      {shown ? value ?? preview : preview}
    </code>
  )
  return (
    <Row
      cells={[
        <div class="line">
          <a href={linkTo("keys", id)}>{item.name ?? code}</a>
          {item.label !== null && (
            <a class="hint" href={linkTo("usage", undefined, { label: item.label })}>{item.label}</a>
          )}
          {isWide && note}
          {item.name !== null && (shown || (isWide ? item.note === null : !isCards)) && code}
        </div>,
        <KeyState item={item} />,
        <Tightest item={item} />,
        ...isWide ? [] : [note],
        <a href={requestsOf(id, { outcome: "open" })}>
          {usage.max_inflight === null
            ? number(usage.in_flight)
            : t.ofMost(number(usage.in_flight), number(usage.max_inflight))}
        </a>,
        <a href={requestsOf(id)}>{number(usage.requests_today)}</a>,
        ...(currency === undefined
          ? []
          : [<Money key="cost" amount={usage.cost_today} currency={currency} inTable />]),
        usage.last_used_at === null ? "–" : <Ago at={Date.parse(usage.last_used_at)} />,
        <RowMenu
          of={name}
          items={[
            { id: "edit", text: t.edit, onClick: () => onAction("edit") },
            { id: "show", text: shown ? t.hide : t.show, disabled: isUnknown, onClick: () => setShown(!shown) },
            {
              id: "copy",
              text: t.copy,
              disabled: isUnknown,
              onClick: () => void copyText(value ?? "", t.copied(name))
            },
            { id: "rotate", text: t.rotate, onClick: () => onAction("rotate") },
            { id: "toggle", text: item.disabled ? t.enable : t.disable, onClick: () => onAction("toggle") },
            { id: "delete", text: t.delete, danger: true, apart: true, onClick: () => onAction("delete") }
          ]}
        />
      ]}
    />
  )
}

/** The list of keys, or the page of the key with the id `of`. */
export const Keys = ({ of }: { readonly of: string | undefined }) =>
  of === undefined ? <KeyList /> : <KeyPage key={of} id={of} />

const KeyList = () => {
  const { common, keys: t } = useTexts()
  const query = useQuery()
  const { q = "" } = query
  const state = states.find((each) => each === query["state"]) ?? ""
  const page = Math.max(1, Math.trunc(Number(query["page"] ?? 1)) || 1)
  const [open, setOpen] = useState<{ readonly action: Exclude<Action, "toggle">; readonly item: KeyItem } | "new">()
  // The list contains ids in place of keys. The two replies may be from before and after a change, so their order may differ.
  const keys = useAcceptedKeys() ?? noKeys
  const currency = useCurrency()
  const layout = useLayout(wideFrom)
  // So that a dialog opens immediately.
  useFields("keys")
  const order = useOrder(sorts)
  const list = useMemo(() => {
    return readOf("admin-keys", "list", {
      query: {
        page,
        page_size: pageSize,
        ...(q === "" ? {} : { q }),
        ...(state === "" ? {} : { state }),
        ...order
      },
      reactivityKeys: ["keys"]
    })
  }, [q, state, page, order?.sort, order?.order])
  useReread(list)
  const close = () => setOpen(undefined)
  const start = (item: KeyItem, action: Action) =>
    action === "toggle" ? setDisabled(item, !item.disabled, t) : setOpen({ action, item })
  const isFiltered = q !== "" || state !== ""
  const isNothing = useValue(list)?.total === 0 && !isFiltered
  const newButton = <ChangeButton class="primary" onClick={() => setOpen("new")}>{t.newKey}</ChangeButton>
  return (
    <>
      <Heading name={common.pages.keys}>
        <HashKeys />
        {newButton}
      </Heading>
      {!isNothing && (
        <div class="row">
          <Search label={t.search} value={q} onSearch={(text) => choose({ q: text, page: "" })} />
          <Select<(typeof states)[number] | "">
            label={t.state}
            value={state}
            options={[["", t.all], ...states.map((each) => [each, t.states[each]] as const)]}
            onValue={(next) => choose({ state: next, page: "" })}
          />
        </div>
      )}
      <Loaded atom={list} rows={8}>
        {({ items, page: shown, total, total_pages }) => {
          const generated = items.length === 1 && items[0]?.generated === true ? keyOfId(keys, items[0].id) : undefined
          return (
            <div class="stack keys">
              {generated !== undefined && <FirstRun of={generated} />}
              <Table
                name={common.pages.keys}
                wideFrom={wideFrom}
                columns={[
                  { name: t.key, rank: 1, sort: "name", class: "text" },
                  { name: t.state, rank: 1, sort: "state", width: "10.4rem" },
                  {
                    name: t.limits,
                    rank: 2,
                    hidden: layout === "cards",
                    sort: "limit_share",
                    first: "desc",
                    width: "20rem"
                  },
                  ...layout === "wide" ? [] : [{ name: t.note, rank: 3, hidden: true } as const],
                  { name: t.inFlight, rank: 4, sort: "in_flight", number: true, width: "5.2rem" },
                  {
                    name: t.today,
                    rank: currency === undefined ? 2 : 4,
                    sort: "requests_today",
                    number: true,
                    width: "8.4rem"
                  },
                  ...(currency === undefined
                    ? []
                    : [
                      {
                        name: t.costToday(currency),
                        rank: 2,
                        sort: "cost_today",
                        number: true,
                        width: "6.6rem"
                      } as const
                    ]),
                  { name: t.lastUsed, rank: 4, sort: "last_used_at", first: "desc", width: "6.6rem", class: "nowrap" },
                  { name: t.actions, hidden: true, width: "3.2rem", class: "tools" }
                ]}
                rows={items.length}
                empty={isFiltered
                  ? t.noneFound
                  : <Empty action={t.firstKey} onAction={() => setOpen("new")}>{t.empty}</Empty>}
              >
                {items.map((item) => (
                  <KeyRow
                    key={item.id}
                    item={item}
                    currency={currency}
                    value={keyOfId(keys, item.id)}
                    onAction={(action) => start(item, action)}
                  />
                ))}
              </Table>
              {(total_pages > 1 || shown > 1) && (
                <Pager
                  page={page}
                  shown={shown}
                  pages={total_pages}
                  total={t.total(total)}
                  onPage={(next) => choose({ page: next === 1 ? "" : String(next) })}
                />
              )}
            </div>
          )
        }}
      </Loaded>
      {open === "new" && <NewKey onClose={close} />}
      {open !== undefined && open !== "new" && open.action === "edit" && <EditKey item={open.item} onClose={close} />}
      {open !== undefined && open !== "new" && open.action === "rotate" && (
        <RotateKey item={open.item} onClose={close} />
      )}
      {open !== undefined && open !== "new" && open.action === "delete" && (
        <DeleteKey item={open.item} onClose={close} />
      )}
    </>
  )
}
