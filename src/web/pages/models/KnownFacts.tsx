/**
 * What is known of each model, with where it is from.
 */
import { Badge } from "../../parts/Badge.tsx"
import { number } from "../../parts/format.ts"
import { Section } from "../../parts/Heading.tsx"
import { Loaded } from "../../parts/Loaded.tsx"
import { LongTable } from "../../parts/Table.tsx"
import type { Reply } from "../../state/client.ts"
import { readOf } from "../../state/reads.ts"
import { useTexts } from "../../state/texts.ts"

type Model = Reply<"admin-models", "list">["models"][number]
type Fact = NonNullable<Model["facts"][keyof Model["facts"]]>

/** The models of the longest page. */
const modelsAtom = readOf("admin-models", "list", {
  query: { page_size: 1_000 },
  reactivityKeys: ["config", "upstreams", "routes"]
})

/** The columns besides the model, which has its name and description with it. */
const columns = ["context_window", "max_output_tokens", "input", "output", "efforts", "tools", "schemas"] as const

const isCount = (name: (typeof columns)[number]): boolean => name === "context_window" || name === "max_output_tokens"

const FactCell = ({ fact, isNumber }: { readonly fact: Fact | undefined; readonly isNumber: boolean }) => {
  const t = useTexts().models.known
  if (fact === undefined) return <td class={isNumber ? "number" : ""}>–</td>
  const { source, value } = fact
  const text = typeof value === "object"
    ? value.length === 0 ? t.none : value.join(", ")
    : typeof value === "boolean"
    ? value ? t.yes : t.no
    : typeof value === "number"
    ? number(value)
    : value === "binding" || value === "advisory" || value === "none"
    ? t.bindings[value]
    : value
  return (
    <td class={isNumber ? "number" : "text"} title={t.sources[source]}>
      {text}
      {source !== "known" && <p class="hint">{t.sources[source]}</p>}
    </td>
  )
}

/** The models whose ids or names contain a text. */
const matching = (models: ReadonlyArray<Model>, search: string): ReadonlyArray<Model> =>
  models.filter(({ facts, id, stands_for }) =>
    stands_for === null && [id, facts.display_name?.value ?? ""].some((text) => text.toLowerCase().includes(search))
  )

/** The catalogue as a table. `search` is in lower case. */
export const KnownFacts = ({ search }: { readonly search: string }) => {
  const { models: { known: t, ...texts } } = useTexts()
  return (
    <Section name={t.title}>
      <Loaded atom={modelsAtom}>
        {({ models }) => (
          <LongTable
            name={t.title}
            columns={[
              texts.model,
              ...columns.map((name) => ({ name: t.facts[name], number: isCount(name) }))
            ]}
            rows={matching(models, search)}
            empty={models.length === 0 ? texts.empty : texts.noneFound}
          >
            {({ facts, hidden, id }) => (
              <>
                <th scope="row" class="text">
                  <code>{id}</code>
                  {hidden && <Badge sign="–" tone="muted" text={t.hidden} />}
                  {facts.display_name !== undefined && <p class="hint">{facts.display_name.value}</p>}
                </th>
                {columns.map((name) => <FactCell key={name} fact={facts[name]} isNumber={isCount(name)} />)}
              </>
            )}
          </LongTable>
        )}
      </Loaded>
    </Section>
  )
}
