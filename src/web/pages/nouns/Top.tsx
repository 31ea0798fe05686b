/**
 * The keys, models, upstreams or accounts of which there is most in a report of usage.
 */
import { Breaking } from "../../parts/Name.tsx"
import { numbers, Table } from "../../parts/Table.tsx"
import { Count, Money } from "../../parts/Values.tsx"
import type { Reply } from "../../state/client.ts"
import { useTexts } from "../../state/texts.ts"

type Row = Reply<"admin-usage", "query">["rows"][number]

/** What rows are named by. */
export type TopBy = "account" | "key" | "model" | "upstream"

/** The rows with the most of a measure, at most `most`; of equal ones those with more requests. */
export const topOf = (
  rows: ReadonlyArray<Row>,
  by: TopBy,
  measure: "cost" | "requests" | "total_tokens",
  most: number
): ReadonlyArray<Row> =>
  rows.filter((row) => (row[by] ?? "none") !== "none")
    .toSorted((a, b) => Number(b[measure]) - Number(a[measure]) || b.requests - a.requests)
    .slice(0, most)

/** Rows with their requests and costs. `linkOf` leads to one; `undefined` for a value without a page. Nothing without rows. */
export const TopTable = ({ by, currency, linkOf, name, rows }: {
  readonly by: TopBy
  readonly name: string
  readonly currency: string | null
  readonly rows: ReadonlyArray<Row>
  readonly linkOf: (row: { readonly value: string; readonly text: string }) => string | undefined
}) => {
  const { usage: t } = useTexts()
  if (rows.length === 0) return null
  return (
    <Table
      name={name}
      columns={[name, ...numbers(t.requests, ...currency === null ? [] : [t.costIn(currency)])]}
      rows={rows.length}
      empty=""
      compact
    >
      {rows.map((row) => {
        const value = row[by] ?? ""
        const text = by === "key"
          ? row.key_name ?? t.specialKeys(value) ?? value
          : by === "account"
          ? row.account_identifier ?? value
          : value
        const link = linkOf({ value, text })
        return (
          <tr key={value}>
            <th scope="row" class="text">
              {link === undefined ? text : (
                <a href={link}>
                  <Breaking text={text} />
                </a>
              )}
            </th>
            <td class="number">
              <Count value={row.requests} />
            </td>
            {currency !== null && (
              <td class="number">
                <Money amount={row.cost} currency={currency} inTable />
              </td>
            )}
          </tr>
        )
      })}
    </Table>
  )
}
