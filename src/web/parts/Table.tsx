/**
 * Tables, and the buttons that lead through long ones.
 */
import { type ComponentChildren, createContext, toChildArray } from "preact"
import { useContext, useEffect, useState } from "preact/hooks"
import { choose, useQuery } from "../state/route.ts"
import { useTexts } from "../state/texts.ts"
import { PressButton, Select } from "./Form.tsx"
import { type Layout, useLayout } from "./layout.ts"
import { ReadContext, type Still, useStill } from "./still.ts"

export interface Column {
  readonly name: string
  /** Numbers are aligned right. */
  readonly number?: boolean
  /** The name is for screen readers alone. */
  readonly hidden?: boolean
  /** Shown in place of the name. */
  readonly content?: ComponentChildren
  /** The width in a table of fixed widths: `7rem`, `20%`. Columns without one share what is left. */
  readonly width?: string
  /** What the list is sorted by when the head is pressed. */
  readonly sort?: string
  /** The order of the first press; of numbers `desc`, else `asc`. */
  readonly first?: "asc" | "desc"
  /**
   * Of lists whose rows are `Row`s. 1: the name, which comes first, and the state. 3 and 4: below the name in windows under 1100 px. In
   * those under 700 px, 2 and 3 make the second line of a card, and what has 4 is on the page of the row alone. Without a rank: a control,
   * which keeps its place.
   */
  readonly rank?: 1 | 2 | 3 | 4
  /** The class of its cells. Those of `select` have check boxes. */
  readonly class?: string
}

/** A check box that has its name itself: the label makes room to press around it. */
export const Tick = ({ children }: { readonly children: ComponentChildren }) => <label class="boxed">{children}</label>

/** What a cell of a column shows. */
const inCell = (column: Column, content: ComponentChildren): ComponentChildren =>
  column.class === "select" ? <Tick>{content}</Tick> : content

/** An order in the address: what a list is sorted by, and in which direction. */
export interface Order<Name extends string = string> {
  readonly sort: Name
  readonly order: "asc" | "desc"
}

/** The order of a list that the address has; `undefined` for the list's own order. */
export const useOrder = <Name extends string>(names: ReadonlyArray<Name>): Order<Name> | undefined => {
  const { order, sort } = useQuery()
  const name = names.find((each) => each === sort)
  return name === undefined ? undefined : { sort: name, order: order === "asc" ? "asc" : "desc" }
}

/** Sorts a list from its first page on; `undefined` returns to the list's own order. */
const chooseOrder = (next: Order | undefined): void =>
  choose({ sort: next?.sort ?? "", order: next?.order ?? "", page: "", cursor: "", row: "" })

/** The order that a press on a head leads to: numbers begin with the largest one; the third press returns to the list's own order. */
const nextOrder = (column: Column, now: Order | undefined): Order | undefined => {
  const { first = column.number === true ? "desc" : "asc", sort } = column
  if (sort === undefined) return undefined
  if (now?.sort !== sort) return { sort, order: first }
  return now.order === first ? { sort, order: first === "asc" ? "desc" : "asc" } : undefined
}

const arrows = { asc: "↑", desc: "↓" } as const

const Head = ({ column, order }: { readonly column: Column; readonly order: Order | undefined }) => {
  const { content, hidden, name, number: isNumber, sort } = column
  const direction = sort !== undefined && order?.sort === sort ? order.order : undefined
  return (
    <th
      scope="col"
      class={isNumber === true ? "number" : ""}
      {...sort === undefined
        ? {}
        : { "aria-sort": { asc: "ascending", desc: "descending", none: "none" }[direction ?? "none"] as "none" }}
    >
      {(content && inCell(column, content)) ?? (hidden === true
        ? <span class="sr-only">{name}</span>
        : sort === undefined
        ? name
        : (
          <button type="button" class="quiet sorts" onClick={() => chooseOrder(nextOrder(column, order))}>
            {name}
            {direction !== undefined && <span aria-hidden="true">{arrows[direction]}</span>}
          </button>
        ))}
    </th>
  )
}

/** Cards have no heads: their order is chosen from a list. */
const OrderChoice = ({ columns, order }: {
  readonly columns: ReadonlyArray<Column>
  readonly order: Order | undefined
}) => {
  const t = useTexts().common
  const sorts = columns.flatMap(({ name, sort }) => sort === undefined ? [] : [{ name, sort }])
  if (sorts.length === 0) return null
  return (
    <Select
      class="inline"
      label={t.sortBy}
      value={order === undefined ? "" : `${order.sort} ${order.order}`}
      options={[
        ["", "–"],
        ...sorts.flatMap(({ name, sort }) =>
          (["asc", "desc"] as const).map((each) => [`${sort} ${each}`, `${name} ${arrows[each]}`] as const)
        )
      ]}
      onValue={(value: string) => {
        const [sort = "", each] = value.split(" ")
        chooseOrder(sort === "" ? undefined : { sort, order: each === "asc" ? "asc" : "desc" })
      }}
    />
  )
}

/** What rows know of their table. */
const Shape = createContext<{ readonly columns: ReadonlyArray<Column>; readonly layout: Layout }>({
  columns: [],
  layout: "wide"
})

/** Whether a column has cells of its own. The column that names a row always has. */
const isShown = (column: Column, index: number, columns: ReadonlyArray<Column>, layout: Layout): boolean =>
  column.rank === undefined || index === columns.findIndex(({ rank }) => rank === 1) ||
  (layout === "wide" || (layout === "lines" && column.rank < 3))

const isEmpty = (content: ComponentChildren): boolean =>
  content === undefined || content === null || content === false || content === "" || content === "–"

/** A row of a list whose columns have ranks. `cells` has the content of each column. A click anywhere opens it, as the link in it does. */
export const Row = ({ cells, class: kind = "", onOpen }: {
  readonly cells: ReadonlyArray<ComponentChildren>
  readonly class?: string
  readonly onOpen?: () => void
}) => {
  const { columns, layout } = useContext(Shape)
  const named = columns.findIndex(({ rank }) => rank === 1)
  const below = columns.flatMap((column, index) =>
    isShown(column, index, columns, layout) || (column.rank ?? 1) === 1 || isEmpty(cells[index]) ||
      (layout === "cards" && column.rank === 4)
      ? []
      : [
        <span key={column.name}>
          <span class={column.hidden === true ? "sr-only" : "hint"}>{column.name}</span> <span>{cells[index]}</span>
        </span>
      ]
  )
  const name = (
    <>
      {layout === "cards"
        ? (
          <div class="first-line">
            {columns.map(({ name: each, rank }, index) =>
              rank === 1 && !isEmpty(cells[index]) && <div key={each}>{cells[index]}</div>
            )}
          </div>
        )
        : cells[named]}
      {below.length > 0 && <div class="second-line">{below}</div>}
    </>
  )
  const content = columns.map((column, index) => {
    if (!isShown(column, index, columns, layout)) return null
    const cellClass = `${column.number === true ? "number" : ""} ${column.class ?? ""}`.trim()
    return index === named
      ? <th key={column.name} scope="row" class={cellClass}>{name}</th>
      : <td key={column.name} class={cellClass}>{inCell(column, cells[index])}</td>
  })
  return onOpen === undefined ?
    <tr class={kind}>{content}</tr> :
    <OpeningRow class={kind} onOpen={onOpen}>{content}</OpeningRow>
}

/** Columns of numbers. */
export const numbers = (...names: ReadonlyArray<string>): ReadonlyArray<Column> =>
  names.map((name) => ({ name, number: true }))

type Child = ReturnType<typeof toChildArray>[number]

/** What a row is known by: its key, without one its place. */
const keyOf = (row: Child, place: number): unknown => typeof row === "object" ? row.key ?? place : place

/** A quiet line that says how many changes of a list wait for the hand to leave, and shows them. */
export const Changes = ({ changes, onTake }: { readonly changes: number; readonly onTake: () => void }) => {
  const t = useTexts().common
  return changes === 0
    ? null
    : (
      <div class="waiting">
        <button type="button" onClick={onTake}>{t.changes(changes)}</button>
      </div>
    )
}

/**
 * A table with its name and columns, in a box that scrolls when the table is too wide. `children` are its rows. If a column has
 * a width, all widths are fixed: they do not follow the contents. While the hand is at its rows, none leaves, arrives or moves.
 */
export const Table = (
  {
    bulk,
    busy = false,
    children,
    columns: given,
    compact = false,
    empty,
    name,
    order: ownOrder,
    part,
    rows,
    scroll = false,
    still,
    wideFrom
  }: {
    readonly name: string
    readonly columns: ReadonlyArray<Column | string>
    /** How many rows there are. */
    readonly rows: number
    /** Shown in place of rows when there are no rows. */
    readonly empty: ComponentChildren
    readonly children: ComponentChildren
    readonly busy?: boolean
    /** The box has a limited height and scrolls vertically too. */
    readonly scroll?: boolean
    /** Rows are less high. */
    readonly compact?: boolean
    /** What can be done with the chosen rows; covers the head but its first column. */
    readonly bulk?: ComponentChildren
    /** The list's own order, which its heads show while the address has none. */
    readonly order?: Order
    /** Which part of a list it shows, where neither the address nor what is read says it. */
    readonly part?: number
    /** Pixels of the window from which there is room for every column. */
    readonly wideFrom?: number
    /** How its rows hold still where what they are made of does so itself. */
    readonly still?: Omit<Still<unknown, HTMLTableSectionElement>, "shown">
  }
) => {
  const { open: _, ...chosen } = useQuery()
  const own = useStill<Child, HTMLTableSectionElement>(rows > 0 ? toChildArray(children) : [], keyOf, [
    name,
    useContext(ReadContext),
    part,
    JSON.stringify(chosen)
  ])
  const { shown } = own
  const { changes, ref, take } = still ?? own
  const all = given.map((each): Column => typeof each === "string" ? { name: each } : each)
  const ofWindow = useLayout(wideFrom)
  const layout = all.some(({ rank }) => rank !== undefined) ? ofWindow : "wide"
  const columns = all.filter((column, index) => isShown(column, index, all, layout))
  const order = useOrder(all.flatMap(({ sort }) => sort ?? [])) ?? ownOrder
  const hasHeads = layout !== "cards" || all.some(({ content, sort }) => content !== undefined || sort !== undefined)
  const isFixed = columns.some(({ width }) => width !== undefined)
  return (
    <div
      class={`table-box ${layout} ${scroll ? "tall" : ""} ${compact ? "compact" : ""}`}
      role="group"
      aria-label={name}
      tabIndex={0}
    >
      {bulk !== undefined && <div class="bulk">{bulk}</div>}
      <Changes changes={changes} onTake={take} />
      <table aria-label={name} aria-busy={busy} class={isFixed ? "fixed" : ""}>
        {isFixed && (
          <colgroup>
            {columns.map(({ name: each, rank, width }) => (
              <col
                key={each}
                style={width === undefined || (layout === "cards" && rank !== undefined) ? {} : { width }}
              />
            ))}
          </colgroup>
        )}
        <thead class={shown.length > 0 && hasHeads ? "" : "of-empty"}>
          <tr>
            {columns.map((column) =>
              layout === "cards" && column.rank === 1
                ? (
                  <th key={column.name} scope="col">
                    <span class="sr-only">{column.name}</span>
                    <OrderChoice columns={all} order={order} />
                  </th>
                )
                : <Head key={column.name} column={column} order={order} />
            )}
          </tr>
        </thead>
        <tbody ref={ref}>
          {shown.length > 0 ? <Shape.Provider value={{ columns: all, layout }}>{[...shown]}</Shape.Provider> : (
            <tr>
              <td class="empty" colSpan={columns.length}>{empty}</td>
            </tr>
          )}
        </tbody>
      </table>
    </div>
  )
}

/** Elements of a row that have a click of their own. */
const ownClicks = "a, button, input, select, label, summary, textarea"

/** A row that a click anywhere opens, as the link in it does; selecting text in it opens nothing. */
export const OpeningRow = ({ children, class: kind = "", onOpen }: {
  readonly onOpen: () => void
  readonly class?: string
  readonly children: ComponentChildren
}) => (
  <tr
    class={`opens ${kind}`}
    onClick={(event) => {
      const isOwn = event.target instanceof Element && event.target.closest(ownClicks) !== null
      if (!isOwn && getSelection()?.isCollapsed !== false) onOpen()
    }}
  >
    {children}
  </tr>
)

/** How much of a limit is used, as a bar with words; from 80 % on it warns, unless it is the share of a whole. */
export const Meter = ({ isShare = false, limit, text, used }: {
  readonly used: number
  readonly limit: number
  readonly text: string
  readonly isShare?: boolean
}) => {
  const share = limit === 0 ? 1 : Math.min(1, used / limit)
  return (
    <div class={`meter ${isShare ? "" : share >= 1 ? "bad" : share >= 0.8 ? "warn" : ""}`}>
      <span class="hint">{text}</span>
      <span class="bar" aria-hidden="true">
        <span style={{ width: `${share * 100}%` }} />
      </span>
    </div>
  )
}

/** A button of a row. Its name for screen readers is `text` followed by the name of the row, unless `name` is given. A disabled one keeps the focus. */
export const RowButton = ({ danger = false, disabled = false, name, of, onClick, text }: {
  readonly text: string
  readonly of: string
  readonly name?: string | undefined
  readonly onClick: () => void
  readonly danger?: boolean
  /** A text is why. */
  readonly disabled?: boolean | string | undefined
}) => {
  const t = useTexts().common
  return (
    <PressButton
      class={`quiet ${danger ? "danger" : ""}`}
      label={name ?? t.actionOn(text, of)}
      disabled={disabled}
      onClick={onClick}
    >
      {text}
    </PressButton>
  )
}

const Turn = ({ onPage, page, pages, text }: {
  readonly page: number
  readonly pages: number
  readonly text: string
  readonly onPage: (page: number) => void
}) => {
  const t = useTexts().common
  return (
    <div class="pager">
      <button type="button" disabled={page <= 1} onClick={() => onPage(page - 1)}>{t.previous}</button>
      <span>{text}</span>
      <button type="button" disabled={page >= pages} onClick={() => onPage(page + 1)}>{t.next}</button>
    </div>
  )
}

/** Leads through the pages of a list, which count from 1. If the list has become too short, goes back to its last page. */
export const Pager = ({ onPage, page, pages, shown, total }: {
  /** The requested page, and the page that is shown. */
  readonly page: number
  readonly shown: number
  readonly pages: number
  /** How much all pages contain, in words. */
  readonly total: string
  readonly onPage: (page: number) => void
}) => {
  const t = useTexts().common
  const isPast = shown > pages
  useEffect(() => {
    if (isPast) onPage(pages)
  }, [isPast, pages])
  const turn = (next: number) => {
    onPage(next)
    scrollTo(0, 0)
  }
  return <Turn page={page} pages={pages} text={`${t.page(shown, pages)} · ${total}`} onPage={turn} />
}

const rowsAtATime = 100

/** A long table, 100 rows at a time. With `follow` it shows the last rows as they come, until the reader turns back. */
export const LongTable = <Row extends object>({ children, columns, empty, follow = false, name, rows }: {
  readonly name: string
  readonly columns: ReadonlyArray<Column | string>
  readonly rows: ReadonlyArray<Row>
  readonly empty: string
  readonly follow?: boolean
  /** The cells of a row. */
  readonly children: (row: Row) => ComponentChildren
}) => {
  const t = useTexts().common
  const [page, setPage] = useState<number>()
  const pages = Math.max(1, Math.ceil(rows.length / rowsAtATime))
  const shown = Math.min(page ?? (follow ? pages : 1), pages)
  const first = (shown - 1) * rowsAtATime
  const end = Math.min(first + rowsAtATime, rows.length)
  return (
    <>
      <Table name={name} scroll columns={columns} rows={rows.length} empty={empty} part={shown}>
        {rows.slice(first, end).map((row, index) => <tr key={first + index}>{children(row)}</tr>)}
      </Table>
      {pages > 1 && (
        <Turn
          page={shown}
          pages={pages}
          text={t.shown(first + 1, end, rows.length)}
          onPage={(next) => setPage(follow && next >= pages ? undefined : next)}
        />
      )}
    </>
  )
}
