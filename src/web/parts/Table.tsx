/**
 * Tables, lists of facts, and the buttons that lead through long ones.
 */
import type { ComponentChildren } from "preact"
import { useEffect, useState } from "preact/hooks"
import { useTexts } from "../state/preferences.ts"

interface Column {
  readonly name: string
  /** Numbers are aligned right. */
  readonly number?: boolean
  /** The name is for screen readers alone. */
  readonly hidden?: boolean
  /** Shown in place of the name. */
  readonly content?: ComponentChildren
  /** The width in a table of fixed widths: `7rem`, `20%`. Columns without one share what is left. */
  readonly width?: string
}

/** Columns of numbers. */
export const numbers = (...names: ReadonlyArray<string>): ReadonlyArray<Column> =>
  names.map((name) => ({ name, number: true }))

/**
 * A table with its name and columns, in a box that scrolls when the table is too wide. `children` are its rows. If a column has
 * a width, all widths are fixed: they do not follow the contents.
 */
export const Table = (
  { bulk, busy = false, children, columns: given, compact = false, empty, name, rows, scroll = false }: {
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
  }
) => {
  const columns = given.map((each): Column => typeof each === "string" ? { name: each } : each)
  const isFixed = columns.some(({ width }) => width !== undefined)
  return (
    <div
      class={`table-box ${scroll ? "tall" : ""} ${compact ? "compact" : ""}`}
      role="group"
      aria-label={name}
      tabIndex={0}
    >
      {bulk !== undefined && <div class="bulk">{bulk}</div>}
      <table aria-label={name} aria-busy={busy} class={isFixed ? "fixed" : ""}>
        {isFixed && (
          <colgroup>
            {columns.map(({ name: each, width }) => <col key={each} style={width === undefined ? {} : { width }} />)}
          </colgroup>
        )}
        <thead class={rows > 0 ? "" : "of-empty"}>
          <tr>
            {columns.map((column) => (
              <th key={column.name} scope="col" class={column.number === true ? "number" : ""}>
                {column.content ?? (column.hidden === true ? <span class="sr-only">{column.name}</span> : column.name)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows > 0 ? children : (
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

/** How much of a limit is used, as a bar with words; from 80 % on it warns. */
export const Meter = ({ limit, text, used }: {
  readonly used: number
  readonly limit: number
  readonly text: string
}) => {
  const share = limit === 0 ? 1 : Math.min(1, used / limit)
  return (
    <div class={`meter ${share >= 1 ? "bad" : share >= 0.8 ? "warn" : ""}`}>
      <span class="hint">{text}</span>
      <span class="bar" aria-hidden="true">
        <span style={{ width: `${share * 100}%` }} />
      </span>
    </div>
  )
}

/** A button of a row. Its name for screen readers is `text` followed by the name of the row, unless `name` is given. */
export const RowButton = ({ danger = false, disabled = false, name, of, onClick, text }: {
  readonly text: string
  readonly of: string
  readonly name?: string | undefined
  readonly onClick: () => void
  readonly danger?: boolean
  readonly disabled?: boolean
}) => {
  const t = useTexts().common
  return (
    <button
      type="button"
      class={`quiet ${danger ? "danger" : ""}`}
      aria-label={name ?? t.actionOn(text, of)}
      disabled={disabled}
      onClick={onClick}
    >
      {text}
    </button>
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
      <Table name={name} scroll columns={columns} rows={rows.length} empty={empty}>
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

/** A name that breaks after `@` and before dots, not inside its words. */
export const Breaking = ({ text }: { readonly text: string }) => (
  <span class="breaks">
    {text.split(/(?<=@)|(?=\.)/).map((part, index) => (
      <>
        {index > 0 && <wbr />}
        {part}
      </>
    ))}
  </span>
)

/** Names with their values. An `undefined` value leaves its name out. */
export const Facts = (
  { facts }: { readonly facts: ReadonlyArray<readonly [name: string, value: ComponentChildren | undefined]> }
) => (
  <dl class="facts">
    {facts.map(([name, value]) =>
      value === undefined ? null : (
        <>
          <dt key={`${name} name`}>{name}</dt>
          <dd key={name} class="text">{value}</dd>
        </>
      )
    )}
  </dl>
)
