/**
 * The bill of a request: each unit of its last try with its price, and both figures where the server told its own.
 */
import { number } from "../../parts/format.ts"
import { Section } from "../../parts/Heading.tsx"
import { type Column, Row, Table } from "../../parts/Table.tsx"
import type { RequestRecord } from "../../state/requests.ts"
import { useTexts } from "../../state/texts.ts"

export const Bill = ({ record }: { readonly record: RequestRecord }) => {
  const { inspector: t, models } = useTexts()
  const { bill } = record
  if (bill === null || bill.cost === null) return null
  const columns: ReadonlyArray<Column> = [
    { name: t.unit, rank: 1, class: "text" },
    { name: t.price, rank: 2, class: "text" },
    { name: t.amount, rank: 2, number: true },
    { name: t.cost, rank: 1, number: true }
  ]
  const { by_prices, by_server, cost, lines, listed, source, unpriced } = bill
  return (
    <Section name={t.bill}>
      <p>
        {t.billed(cost, source)}
        {listed !== null && by_prices !== null && ` ${models.listPrice(listed)}.`}
        {source === "server" && by_prices !== null && ` ${t.byPrices(by_prices)}`}
        {source === "prices" && by_server !== null && ` ${t.byServer(by_server)}`}
        {unpriced.length > 0 && ` ${t.unpricedUnits(unpriced.map(({ unit }) => unit).join(", "))}`}
      </p>
      {lines.length > 0 && (
        <Table name={t.bill} columns={columns} rows={lines.length} empty="">
          {lines.map(({ amount, cost, price, unit }) => (
            <Row
              key={unit}
              cells={[<code>{unit}</code>, price === null ? "–" : <code>{price}</code>, number(amount), cost]}
            />
          ))}
        </Table>
      )}
    </Section>
  )
}
