/**
 * The bill of a request: each unit of its last try with its price, and both figures where the server told its own.
 */
import { number } from "../../parts/format.ts"
import { Section } from "../../parts/Heading.tsx"
import { numbers, Table } from "../../parts/Table.tsx"
import type { RequestRecord } from "../../state/requests.ts"
import { useTexts } from "../../state/texts.ts"

export const Bill = ({ record }: { readonly record: RequestRecord }) => {
  const { inspector: t, models } = useTexts()
  const { bill } = record
  if (bill === null || bill.cost === null) return null
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
        <Table name={t.bill} columns={[t.unit, t.price, ...numbers(t.amount, t.cost)]} rows={lines.length} empty="">
          {lines.map((line) => (
            <tr key={line.unit}>
              <th scope="row" class="text">
                <code>{line.unit}</code>
              </th>
              <td class="text">{line.price === null ? "–" : <code>{line.price}</code>}</td>
              <td class="number">{number(line.amount)}</td>
              <td class="number">{line.cost}</td>
            </tr>
          ))}
        </Table>
      )}
    </Section>
  )
}
