/**
 * Tables of figures.
 */

/** A row: a name, then its cells. */
export type Row = readonly [name: string, ...cells: ReadonlyArray<string | number>]

const shown = (cell: string | number): string =>
  typeof cell === "string" ? cell : Math.abs(cell) >= 100 ? cell.toFixed(0) : cell.toFixed(2)

/** A Markdown table. */
export const table = (head: ReadonlyArray<string>, rows: ReadonlyArray<Row>): string => {
  const cells = [head, ...rows.map((row) => row.map(shown))]
  const widths = head.map((_, column) => Math.max(...cells.map((row) => (row[column] ?? "").length)))
  const line = (row: ReadonlyArray<string>) =>
    `| ${
      widths.map((width, i) => i === 0 ? (row[i] ?? "").padEnd(width) : (row[i] ?? "").padStart(width)).join(" | ")
    } |`
  return [line(cells[0]!), `|${widths.map((width) => "-".repeat(width + 2)).join("|")}|`, ...cells.slice(1).map(line)]
    .join("\n")
}
