/**
 * Models: where each one is served and what it costs. Prices that are missing are marked, and every price can be changed.
 */
import { useState } from "preact/hooks"
import { EntryFields, fieldsAtom, nameOf, useEntry } from "../../forms/Entry.tsx"
import type { Entry, FormField } from "../../forms/fields.ts"
import { Badge } from "../../parts/Badge.tsx"
import { FormDialog } from "../../parts/Dialog.tsx"
import { Check, Search, Select } from "../../parts/Form.tsx"
import { Heading, Section } from "../../parts/Heading.tsx"
import { Loaded } from "../../parts/Loaded.tsx"
import { numbers, Pager, RowButton, Table } from "../../parts/Table.tsx"
import { useTexts } from "../../state/preferences.ts"
import { choose, useQuery } from "../../state/route.ts"
import { DurabilityNotice } from "../configuration.tsx"
import { KnownFacts } from "./KnownFacts.tsx"
import {
  bareOf,
  isDated,
  namesFor,
  type Price,
  type PricedTarget,
  type Prices,
  pricesAtom,
  savePrice,
  unusedNames
} from "./prices.ts"

const pageSize = 50

/** The fields of prices. */
interface Units {
  readonly units: ReadonlyArray<FormField>
}

/** The fields that the tables show; the dialog has all of them. */
const shownUnits: ReadonlyArray<string> = ["input", "cached_input", "output", "per_request"]

const columnsOf = (units: ReadonlyArray<FormField>) => units.filter(({ path }) => shownUnits.includes(path))

/** The columns of prices. */
const useColumns = ({ units }: Units) => {
  const t = useTexts().models
  return [...numbers(...columnsOf(units).map(({ path }) => nameOf(t.fields, path))), { name: t.actions, hidden: true }]
}

const PriceCells = ({ missing, price, units }: Units & {
  readonly price: Price | undefined
  readonly missing: ReadonlyArray<string>
}) => {
  const t = useTexts().models
  const values: Entry = price === undefined || isDated(price) ? {} : price
  return (
    <>
      {columnsOf(units).map(({ path }) => (
        <td key={path} class="number">
          {values[path] !== undefined
            ? String(values[path])
            : missing.some((unit) => unit === path)
            ? <Badge sign="!" tone="warn" text={t.missing} />
            : "–"}
        </td>
      ))}
    </>
  )
}

interface Editing {
  /** What the dialog is about. */
  readonly title: string
  /** Names that the price may stand under. */
  readonly names: ReadonlyArray<string>
}

const noPrice: Entry = {}

/** The dialog that sets, changes and deletes a price. */
const EditPrice = ({ editing: { names, title }, onClose, prices, units }: Units & {
  readonly editing: Editing
  readonly prices: Prices
  readonly onClose: () => void
}) => {
  const { common, models: t, settings } = useTexts()
  const [name, setName] = useState(names[0]!)
  const before = prices[name]
  const isList = before !== undefined && isDated(before)
  const form = useEntry(units, before === undefined || isList ? noPrice : before, { of: name })
  const save = () => {
    if (isList) return Promise.resolve(t.dated)
    if (form.isFaulty) return Promise.resolve(settings.refused)
    const given = Object.entries({ ...before, ...form.values() }).filter(([, value]) => value !== null)
    // Steps, tiers and factors stay as they are. Without a price for anything else, the entry is deleted.
    const isEmpty = given.every(([field]) => field === "factors" || field === "from")
    const price = isEmpty ? undefined : Object.fromEntries(given) as Price
    return price === undefined && before === undefined
      ? Promise.resolve(t.noPrice)
      : savePrice(name, before, price, t)
  }
  return (
    <FormDialog name={common.actionOn(t.setPrice, title)} onClose={onClose} onSave={save}>
      <Select label={t.entry} value={name} options={names.map((each) => [each, each])} onValue={setName} />
      <EntryFields grow form={form} names={t.fields} paths={units.map(({ path }) => path)} />
      <p class="hint">{isList ? t.dated : before === undefined ? t.hint : t.hintDelete}</p>
    </FormDialog>
  )
}

const matches = (search: string) => ({ name, price, server_model, target }: PricedTarget): boolean =>
  [name, target, server_model, price ?? ""].some((text) => text.toLowerCase().includes(search))

const ModelTable = ({ onEdit, prices, targets, units }: Units & {
  readonly prices: Prices
  readonly targets: ReadonlyArray<PricedTarget>
  readonly onEdit: (editing: Editing) => void
}) => {
  const { common, models: t } = useTexts()
  const { missing = "", page: asked = "1", q = "" } = useQuery()
  const page = Math.max(1, Math.trunc(Number(asked)) || 1)
  const lacking = targets.filter((target) => bareOf(target).length > 0).length
  const found = targets.filter(matches(q.toLowerCase()))
    .filter((target) => missing === "" || bareOf(target).length > 0)
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
        columns={[t.model, t.target, ...useColumns({ units })]}
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
            <PriceCells
              units={units}
              price={target.price === null ? undefined : prices[target.price]}
              missing={bareOf(target)}
            />
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
const Unused = ({ names, onEdit, prices, units }: Units & {
  readonly names: ReadonlyArray<string>
  readonly prices: Prices
  readonly onEdit: (editing: Editing) => void
}) => {
  const t = useTexts().models
  const columns = useColumns({ units })
  if (names.length === 0) return null
  return (
    <Section name={t.unused}>
      <Table
        name={t.unused}
        columns={[t.entry, ...columns]}
        rows={names.length}
        empty=""
      >
        {names.slice(0, unusedAtMost).map((name) => (
          <tr key={name}>
            <th scope="row" class="text">
              <code>{name}</code>
            </th>
            <PriceCells units={units} price={prices[name]} missing={[]} />
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
      <Loaded atom={fieldsAtom}>
        {({ entries: { prices: units } }) => (
          <Loaded atom={pricesAtom}>
            {({ currency, prices, targets }) => (
              <div class="stack">
                {currency !== null && <p class="hint">{t.currency(currency)}</p>}
                <ModelTable units={units} prices={prices} targets={targets} onEdit={setEditing} />
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
      <KnownFacts search={(useQuery()["q"] ?? "").toLowerCase()} />
    </>
  )
}
