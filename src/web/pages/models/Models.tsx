/**
 * Models: each name that callers may use, where it is served, what it costs, and what it did in the last 24 hours. Prices that are missing
 * are marked, and every price can be changed.
 */
import { useMemo, useState } from "preact/hooks"
import { fieldsAtom, nameOf } from "../../forms/Entry.tsx"
import type { Entry } from "../../forms/fields.ts"
import { Badge } from "../../parts/Badge.tsx"
import { useLock } from "../../parts/configuration.tsx"
import { Empty } from "../../parts/Empty.tsx"
import { Check, Search, Select } from "../../parts/Form.tsx"
import { number } from "../../parts/format.ts"
import { Heading, Section } from "../../parts/Heading.tsx"
import { useLayout } from "../../parts/layout.ts"
import { Loaded } from "../../parts/Loaded.tsx"
import { RowMenu } from "../../parts/Menu.tsx"
import { Pager, Row, RowButton, Table, useOrder } from "../../parts/Table.tsx"
import { Count, Money, Took } from "../../parts/Values.tsx"
import { readOf } from "../../state/reads.ts"
import { choose, linkTo, useQuery } from "../../state/route.ts"
import { useTexts } from "../../state/texts.ts"
import { ModelPage } from "./ModelPage.tsx"
import {
  columnsOf,
  type Editing,
  EditPrice,
  type Model,
  priceColumns,
  requestsOf,
  type Units,
  usePriceActions,
  usePriceCells
} from "./Price.tsx"
import { bareOf, isDated, type Price, type PricedTarget, type Prices, pricesAtom, unusedNames } from "./prices.ts"

const pageSize = 50

/** The most targets and prices of a row. */
const mostShown = 3

/** What the list can be sorted by. */
const sorts = ["id", "kind", "input", "requests", "cost", "first_event_p95_ms"] as const
const kinds = ["model", "route", "alias", "family"] as const

const ModelRow = ({ currency, entries, model, onEdit, targetOf }: {
  readonly model: Model
  readonly currency: string | null
  readonly entries: Prices
  readonly targetOf: (model: Model, target: string) => PricedTarget | undefined
  readonly onEdit: (editing: Editing) => void
}) => {
  const t = useTexts().models
  const { day, facts, hidden, id, kind, stands_for, targets } = model
  const priced = targets.flatMap((target) => targetOf(model, target) ?? [])
  const actions = usePriceActions(priced, onEdit)
  return (
    <Row
      cells={[
        <>
          {kind === "family" ? <code>{id}</code> : (
            <a href={linkTo("models", stands_for ?? id)}>
              <code>{id}</code>
            </a>
          )}
          {hidden && (
            <>
              {" "}
              <Badge sign="–" tone="muted" text={t.known.hidden} />
            </>
          )}
          {facts.display_name !== undefined && <p class="hint">{facts.display_name.value}</p>}
        </>,
        stands_for === null ? t.kinds[kind] : t.standsFor(t.kinds[kind], stands_for),
        facts.context_window === undefined ? "–" : <Count key="window" value={facts.context_window.value} />,
        ...usePriceCells(model, entries, (target) => targetOf(model, target), mostShown),
        day === null ? "–" : <a href={requestsOf(id)}>{number(day.requests)}</a>,
        day === null ? "–" : <Money amount={day.cost} currency={currency} inTable />,
        typeof day?.first_event_p95_ms === "number" ? <Took ms={day.first_event_p95_ms} /> : "–",
        <RowMenu key="menu" of={id} items={actions} disabled={priced.length === 0} />
      ]}
    />
  )
}

/** Models that are read concurrently where the page looks for missing prices itself. */
const mostRead = 1_000

const ModelTable = ({ onEdit, prices, targets }: {
  readonly prices: Prices
  readonly targets: ReadonlyArray<PricedTarget>
  readonly onEdit: (editing: Editing) => void
}) => {
  const { common, models: t } = useTexts()
  const { kind: wantedKind, missing = "", page: asked = "1", q = "" } = useQuery()
  const kind = kinds.find((each) => each === wantedKind) ?? ""
  const page = Math.max(1, Math.trunc(Number(asked)) || 1)
  const isCards = useLayout() === "cards"
  const order = useOrder(sorts)
  const list = useMemo(() =>
    readOf("admin-models", "list", {
      query: {
        q,
        kind,
        ...order,
        ...missing === "" ? { page, page_size: pageSize } : { page_size: mostRead }
      },
      reactivityKeys: ["config", "upstreams", "routes"]
    }), [q, kind, order?.sort, order?.order, missing, missing === "" ? page : 1])
  const byName = useMemo(() => new Map(targets.map((each) => [`${each.name} ${each.target}`, each])), [targets])
  const targetOf = ({ id, stands_for }: Model, target: string) => byName.get(`${stands_for ?? id} ${target}`)
  const lacking = new Set(targets.filter((target) => bareOf(target).length > 0).map(({ name }) => name))
  return (
    <>
      <div class="row">
        <Search label={t.search} value={q} onSearch={(text) => choose({ q: text, page: "" })} />
        <Select<(typeof kinds)[number] | "">
          label={t.kind}
          value={kind}
          options={[["", t.everyKind], ...kinds.map((each) => [each, t.kinds[each]] as const)]}
          onValue={(next) => choose({ kind: next, page: "" })}
        />
        <Check
          label={t.onlyMissing(lacking.size)}
          checked={missing !== ""}
          onChange={(event) => choose({ missing: event.currentTarget.checked ? "yes" : "", page: "" })}
        />
      </div>
      <Loaded atom={list} rows={8}>
        {({ currency, models, total }) => {
          const found = missing === ""
            ? models
            : models.filter((model) => model.stands_for === null && lacking.has(model.id))
          const all = missing === "" ? total : found.length
          const pages = Math.max(1, Math.ceil(all / pageSize))
          const isNarrowed = q !== "" || kind !== "" || missing !== ""
          return (
            <>
              <Table
                name={common.pages.models}
                wideFrom={1400}
                columns={[
                  { name: t.model, rank: 1, sort: "id", class: "text" },
                  { name: t.kind, rank: 4, sort: "kind", width: "8rem", class: "text" },
                  { name: t.known.facts.context_window, rank: 4, number: true, width: "5.6rem" },
                  { name: t.target, rank: 4, width: "18%" },
                  ...priceColumns.map((name) => ({
                    name: t.prices[name],
                    rank: name === "cached_input" ? 4 : 2,
                    number: true,
                    first: "asc",
                    width: "6rem",
                    ...name === "input" ? { sort: name } : {}
                  } as const)),
                  { name: t.requests, rank: 2, sort: "requests", number: true, width: "6rem" },
                  {
                    name: currency === null ? t.cost : t.costIn(currency),
                    // On a card in its first line.
                    rank: isCards ? 1 : 2,
                    sort: "cost",
                    number: true,
                    width: "7rem"
                  },
                  { name: t.p95, rank: 4, sort: "first_event_p95_ms", first: "desc", number: true, width: "6.4rem" },
                  { name: t.actions, hidden: true, width: "3.2rem", class: "tools" }
                ]}
                rows={found.length}
                empty={isNarrowed ? t.noneFound : <Empty>{t.empty}</Empty>}
              >
                {found.slice(...missing === "" ? [0] : [(page - 1) * pageSize, page * pageSize]).map((model) => (
                  <ModelRow
                    key={model.id}
                    model={model}
                    currency={currency}
                    entries={prices}
                    targetOf={targetOf}
                    onEdit={onEdit}
                  />
                ))}
              </Table>
              {pages > 1 && (
                <Pager
                  page={page}
                  shown={page}
                  pages={pages}
                  total={t.total(all)}
                  onPage={(next) => choose({ page: next === 1 ? "" : String(next) })}
                />
              )}
              <p class="hint">{t.ofDay}</p>
            </>
          )
        }}
      </Loaded>
    </>
  )
}

const unusedAtMost = 50

/** A field of a price of one date. */
const priceOf = (price: Price | undefined, field: string): string => {
  const values: Entry = price === undefined || isDated(price) ? {} : price
  return values[field] === undefined ? "–" : String(values[field])
}

/** Prices of no model that is known: of names with a mistake, or of models that are gone. */
const Unused = ({ names, onEdit, prices, units }: Units & {
  readonly names: ReadonlyArray<string>
  readonly prices: Prices
  readonly onEdit: (editing: Editing) => void
}) => {
  const t = useTexts().models
  const lock = useLock()
  if (names.length === 0) return null
  return (
    <Section name={t.unused}>
      <Table
        name={t.unused}
        columns={[
          { name: t.entry, rank: 1 },
          ...columnsOf(units).map(({ path }) => ({ name: nameOf(t.fields, path), rank: 2, number: true } as const)),
          { name: t.actions, hidden: true, class: "tools" }
        ]}
        rows={names.length}
        empty=""
      >
        {names.slice(0, unusedAtMost).map((name) => (
          <Row
            key={name}
            cells={[
              <code key="name">{name}</code>,
              ...columnsOf(units).map(({ path }) => priceOf(prices[name], path)),
              <RowButton
                key="set"
                text={t.setPrice}
                of={name}
                disabled={lock}
                onClick={() => onEdit({ title: name, names: [name] })}
              />
            ]}
          />
        ))}
      </Table>
      {names.length > unusedAtMost && <p class="hint">{t.moreUnused(names.length - unusedAtMost)}</p>}
    </Section>
  )
}

/** The list of models, or the page of the one named `of`. */
export const Models = ({ of }: { readonly of: string | undefined }) =>
  of === undefined ? <ModelList /> : <ModelPage key={of} id={of} />

const ModelList = () => {
  const { common, models: t } = useTexts()
  const [editing, setEditing] = useState<Editing>()
  return (
    <>
      <Heading name={common.pages.models} />
      <p class="lead">{t.lead}</p>
      <Loaded atom={fieldsAtom}>
        {({ entries: { prices: units } }) => (
          <Loaded atom={pricesAtom}>
            {({ currency, prices, targets }) => (
              <div class="stack models">
                {currency !== null && <p class="hint">{t.currency(currency)}</p>}
                <ModelTable prices={prices} targets={targets} onEdit={setEditing} />
                <Unused units={units} names={unusedNames(prices, targets)} prices={prices} onEdit={setEditing} />
                {editing !== undefined && (
                  <EditPrice
                    units={units}
                    editing={editing}
                    prices={prices}
                    onClose={() => setEditing(undefined)}
                  />
                )}
              </div>
            )}
          </Loaded>
        )}
      </Loaded>
    </>
  )
}
