/**
 * Models: where each one is served and what it costs. Prices that are missing are marked, and every price can be changed.
 */
import { useState } from "preact/hooks"
import { Badge } from "../../parts/Badge.tsx"
import { FormDialog } from "../../parts/Dialog.tsx"
import { Check, Search, Select, TextField } from "../../parts/Form.tsx"
import { Heading, Section } from "../../parts/Heading.tsx"
import { Loaded } from "../../parts/Loaded.tsx"
import { numbers, Pager, RowButton, Table } from "../../parts/Table.tsx"
import { useTexts } from "../../state/preferences.ts"
import { choose, useQuery } from "../../state/route.ts"
import { DurabilityNotice } from "../configuration.tsx"
import {
  type Entry,
  entryOf,
  namesFor,
  type PricedTarget,
  type Prices,
  pricesAtom,
  savePrice,
  type Unit,
  units,
  unusedNames
} from "./prices.ts"

const pageSize = 50

/** The price of a unit, or that it is missing. */
const Price = ({ entry, isMissing, unit }: {
  readonly entry: Entry | undefined
  readonly unit: Unit
  readonly isMissing: boolean
}) => {
  const t = useTexts().models
  const price = entry?.[unit]
  return (
    <td class="number">
      {price !== undefined ? String(price) : isMissing ? <Badge sign="!" tone="warn" text={t.missing} /> : "–"}
    </td>
  )
}

const PriceCells = (
  { entry, missing }: { readonly entry: Entry | undefined; readonly missing: ReadonlyArray<Unit> }
) => (
  <>
    {units.map((unit) => <Price key={unit} unit={unit} entry={entry} isMissing={missing.includes(unit)} />)}
  </>
)

interface Editing {
  /** What the dialog is about. */
  readonly title: string
  /** Names that the price may stand under. */
  readonly names: ReadonlyArray<string>
}

/** The dialog that sets, changes and deletes a price. */
const EditPrice = ({ editing: { names, title }, onClose, prices }: {
  readonly editing: Editing
  readonly prices: Prices
  readonly onClose: () => void
}) => {
  const { common, models: t } = useTexts()
  const [name, setName] = useState(names[0]!)
  const before = prices[name]
  return (
    <FormDialog
      name={common.actionOn(t.setPrice, title)}
      onClose={onClose}
      onSave={(read) => {
        const entry = entryOf({
          input: read("input"),
          cached_input: read("cached_input"),
          output: read("output"),
          per_request: read("per_request")
        })
        return entry === undefined && before === undefined
          ? Promise.resolve(t.noPrice)
          : savePrice(name, before, entry, t)
      }}
    >
      <Select label={t.entry} value={name} options={names.map((each) => [each, each])} onValue={setName} />
      <div class="row" key={name}>
        {units.map((unit) => (
          <TextField
            key={unit}
            grow
            label={t.units[unit]}
            name={unit}
            inputMode="decimal"
            defaultValue={String(before?.[unit] ?? "")}
          />
        ))}
      </div>
      <p class="hint">{before === undefined ? t.hint : t.hintDelete}</p>
    </FormDialog>
  )
}

const matches = (search: string) => ({ name, price, server_model, target }: PricedTarget): boolean =>
  [name, target, server_model, price ?? ""].some((text) => text.toLowerCase().includes(search))

const ModelTable = ({ onEdit, prices, targets }: {
  readonly prices: Prices
  readonly targets: ReadonlyArray<PricedTarget>
  readonly onEdit: (editing: Editing) => void
}) => {
  const { common, models: t } = useTexts()
  const { missing = "", page: asked = "1", q = "" } = useQuery()
  const page = Math.max(1, Math.trunc(Number(asked)) || 1)
  const lacking = targets.filter((target) => target.missing.length > 0).length
  const found = targets.filter(matches(q.toLowerCase()))
    .filter((target) => missing === "" || target.missing.length > 0)
  const pages = Math.max(1, Math.ceil(found.length / pageSize))
  return (
    <>
      <div class="row">
        <Search label={t.search} value={q} onSearch={(text) => choose({ q: text, page: "" })} />
        <Check
          label={t.onlyMissing(lacking)}
          checked={missing !== ""}
          onChange={(event) => choose({ missing: event.currentTarget.checked ? "yes" : "", page: "" })}
        />
      </div>
      <Table
        name={common.pages.models}
        columns={[t.model, t.target, ...numbers(...units.map((unit) => t.units[unit])), {
          name: t.actions,
          hidden: true
        }]}
        rows={found.length}
        empty={targets.length === 0 ? t.empty : t.noneFound}
      >
        {found.slice((page - 1) * pageSize, page * pageSize).map((target) => (
          <tr key={`${target.name} ${target.target}`}>
            <th scope="row" class="text">
              <code>{target.name}</code>
            </th>
            <td class="text">
              <code>{target.target}</code>
              {target.server_model !== target.model && <p class="hint">{t.serverModel(target.server_model)}</p>}
              {target.price !== null && target.price !== target.target && <p class="hint">{t.priceOf(target.price)}</p>}
            </td>
            <PriceCells entry={target.price === null ? undefined : prices[target.price]} missing={target.missing} />
            <td class="tools">
              <RowButton
                text={t.setPrice}
                of={target.name === target.model ? target.target : `${target.name}, ${target.target}`}
                onClick={() =>
                  onEdit({ title: target.target, names: namesFor(target) })}
              />
            </td>
          </tr>
        ))}
      </Table>
      {pages > 1 && (
        <Pager
          page={page}
          shown={page}
          pages={pages}
          total={t.total(found.length)}
          onPage={(next) => choose({ page: next === 1 ? "" : String(next) })}
        />
      )}
    </>
  )
}

const unusedAtMost = 50

/** Prices of no model that is known: of names with a mistake, or of models that are gone. */
const Unused = ({ names, onEdit, prices }: {
  readonly names: ReadonlyArray<string>
  readonly prices: Prices
  readonly onEdit: (editing: Editing) => void
}) => {
  const t = useTexts().models
  if (names.length === 0) return null
  return (
    <Section name={t.unused}>
      <Table
        name={t.unused}
        columns={[t.entry, ...numbers(...units.map((unit) => t.units[unit])), { name: t.actions, hidden: true }]}
        rows={names.length}
        empty=""
      >
        {names.slice(0, unusedAtMost).map((name) => (
          <tr key={name}>
            <th scope="row" class="text">
              <code>{name}</code>
            </th>
            <PriceCells entry={prices[name]} missing={[]} />
            <td class="tools">
              <RowButton text={t.setPrice} of={name} onClick={() => onEdit({ title: name, names: [name] })} />
            </td>
          </tr>
        ))}
      </Table>
      {names.length > unusedAtMost && <p class="hint">{t.moreUnused(names.length - unusedAtMost)}</p>}
    </Section>
  )
}

export const Models = () => {
  const { common, models: t } = useTexts()
  const [editing, setEditing] = useState<Editing>()
  return (
    <>
      <Heading name={common.pages.models} />
      <p class="lead">{t.lead}</p>
      <DurabilityNotice />
      <Loaded atom={pricesAtom}>
        {({ currency, prices, targets }) => (
          <div class="stack">
            {currency !== null && <p class="hint">{t.currency(currency)}</p>}
            <ModelTable prices={prices} targets={targets} onEdit={setEditing} />
            <Unused names={unusedNames(prices, targets)} prices={prices} onEdit={setEditing} />
            {editing !== undefined && (
              <EditPrice
                editing={editing}
                prices={prices}
                onClose={() => setEditing(undefined)}
              />
            )}
          </div>
        )}
      </Loaded>
    </>
  )
}
