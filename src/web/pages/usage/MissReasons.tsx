/**
 * Why the turns of a time were no hits in the prompt cache. Each reason leads to its requests.
 */
import { number, percent } from "../../parts/format.ts"
import { Section } from "../../parts/Heading.tsx"
import { numbers, Table } from "../../parts/Table.tsx"
import type { RequestFacets } from "../../state/requests.ts"
import { linkTo, type Query } from "../../state/route.ts"
import { useTexts } from "../../state/texts.ts"

/** `query` is the filter of the requests that were counted. */
export const MissReasons = ({ counted: { facets, total }, query }: {
  readonly counted: Pick<RequestFacets, "facets" | "total">
  readonly query: Query
}) => {
  const { promptCache, usage: t } = useTexts()
  const reasons = facets.prompt_cache
  if (reasons.length === 0) return null
  return (
    <Section name={t.missReasons}>
      <Table
        name={t.missReasons}
        columns={[t.reason, ...numbers(t.requests, t.share)]}
        rows={reasons.length}
        empty=""
        compact
      >
        {reasons.map(({ count, value }) => (
          <tr key={value}>
            <th scope="row">
              <a href={linkTo("requests", undefined, { ...query, prompt_cache: value })}>
                {promptCache.names(value)}
              </a>
            </th>
            <td class="number">{number(count)}</td>
            <td class="number">{percent(count, total)}</td>
          </tr>
        ))}
      </Table>
      <p class="hint">{t.missReasonsHint}</p>
    </Section>
  )
}
