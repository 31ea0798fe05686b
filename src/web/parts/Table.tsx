/**
 * Tables, which scroll in a box of their own where they are too wide.
 */
import type { ComponentChildren } from "preact"

export interface Column {
  readonly name: string
  /** Numbers stand at the right. */
  readonly number?: boolean
  /** The name is for screen readers alone. */
  readonly hidden?: boolean
  /** In the place of the name. */
  readonly content?: ComponentChildren
}

/** A table with its name and its columns; `children` are its rows. */
export const Table = ({ busy = false, children, columns, empty, name, rows, scroll = false }: {
  readonly name: string
  readonly columns: ReadonlyArray<Column>
  /** How many rows there are. */
  readonly rows: number
  /** What is said where there are none. */
  readonly empty: ComponentChildren
  readonly children: ComponentChildren
  readonly busy?: boolean
  /** Long tables scroll up and down in their box too. */
  readonly scroll?: boolean
}) => (
  <div class={`table-box ${scroll ? "tall" : ""}`} role="group" aria-label={name} tabIndex={0}>
    <table aria-label={name} aria-busy={busy}>
      <thead>
        <tr>
          {columns.map((column) => (
            <th key={column.name} scope="col" class={column.number === true ? "number" : ""}>
              {column.content !== undefined
                ? column.content
                : column.hidden === true
                ? <span class="sr-only">{column.name}</span>
                : column.name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows === 0
          ? (
            <tr>
              <td class="empty" colSpan={columns.length}>{empty}</td>
            </tr>
          )
          : children}
      </tbody>
    </table>
  </div>
)
