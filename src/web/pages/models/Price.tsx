/**
 * The prices of a model's targets, and the dialog that sets one.
 */
import type { ComponentChildren } from "preact"
import { useState } from "preact/hooks"
import { EntryFields, nameOf, otherPaths, useEntry } from "../../forms/Entry.tsx"
import type { Entry, FormField } from "../../forms/fields.ts"
import { Badge } from "../../parts/Badge.tsx"
import { useLock } from "../../parts/configuration.tsx"
import { Dialog, FormDialog } from "../../parts/Dialog.tsx"
import { Select } from "../../parts/Form.tsx"
import { date, dateTime } from "../../parts/format.ts"
import { numbers, Table } from "../../parts/Table.tsx"
import type { Reply } from "../../state/client.ts"
import { linkTo } from "../../state/route.ts"
import { useTexts } from "../../state/texts.ts"
import type { Texts } from "../../texts/en.ts"
import { currentOf, nextOf } from "./dated.ts"
import { bareOf, isDated, namesFor, type Price, type PricedTarget, type Prices, savePrice } from "./prices.ts"

/** The fields of prices. */
export interface Units {
  readonly units: ReadonlyArray<FormField>
}

/** The fields that the tables show; the dialog has all of them. */
const shownUnits: ReadonlyArray<string> = ["input", "cached_input", "output", "per_request"]

export const columnsOf = (units: ReadonlyArray<FormField>) => units.filter(({ path }) => shownUnits.includes(path))

export interface Editing {
  /** What the dialog is about. */
  readonly title: string
  /** Names that the price may stand under. */
  readonly names: ReadonlyArray<string>
}

const noPrice: Entry = {}

/** The prices of an entry by their dates, the one that counts now marked. */
const DatedPrices = ({ entry, units }: Units & { readonly entry: Extract<Price, ReadonlyArray<unknown>> }) => {
  const t = useTexts().models
  const now = currentOf(entry, Date.now())
  return (
    <Table
      name={t.byDate}
      columns={[t.from, ...numbers(...columnsOf(units).map(({ path }) => nameOf(t.fields, path)))]}
      rows={entry.length}
      empty=""
      compact
    >
      {entry.map((each, index) => (
        <tr key={index}>
          <th scope="row">
            {each.from === undefined ? t.always : dateTime(Date.parse(each.from))}
            {each === now && <Badge sign="●" tone="good" text={t.counts} />}
          </th>
          {columnsOf(units).map(({ path }) => <td key={path} class="number">{String((each as Entry)[path] ?? "–")}
          </td>)}
        </tr>
      ))}
    </Table>
  )
}

/** The dialog that sets, changes and deletes a price. */
export const EditPrice = ({ editing: { names, title }, onClose, prices, units }: Units & {
  readonly editing: Editing
  readonly prices: Prices
  readonly onClose: () => void
}) => {
  const { common, models: t, settings } = useTexts()
  const [name, setName] = useState(names[0]!)
  const before = prices[name]
  const isList = before !== undefined && isDated(before)
  const form = useEntry(units, before === undefined || isList ? noPrice : before, { of: name })
  const given = Object.entries({ ...before, ...form.values() }).filter(([, value]) => value !== null)
  // Steps, tiers and factors stay as they are. Without a price for anything else, the entry is deleted.
  const isEmpty = given.every(([field]) => field === "factors" || field === "from")
  const isDeleted = isEmpty && before !== undefined
  const save = () => {
    if (form.isFaulty) return Promise.resolve(settings.refused)
    const price = isEmpty ? undefined : Object.fromEntries(given) as Price
    return price === undefined && before === undefined
      ? Promise.resolve(t.noPrice)
      : savePrice(name, before, price, t)
  }
  if (isList) {
    return (
      <Dialog name={common.actionOn(t.priceOf(name), title)} onClose={onClose}>
        <DatedPrices entry={before} units={units} />
        <p class="hint">{t.dated}</p>
        <div class="actions">
          {names.filter((each) => each !== name).map((each) => (
            <button
              key={each}
              type="button"
              onClick={() => setName(each)}
            >
              {t.setPriceOf(each)}
            </button>
          ))}
          <button type="button" onClick={onClose}>{common.close}</button>
        </div>
      </Dialog>
    )
  }
  return (
    <FormDialog
      name={common.actionOn(t.setPrice, title)}
      action={isDeleted ? t.deletePrice : common.save}
      onClose={onClose}
      onSave={save}
    >
      <Select label={t.entry} value={name} options={names.map((each) => [each, each])} onValue={setName} />
      <EntryFields form={form} names={t.fields} paths={priceColumns} />
      <details>
        <summary>{t.otherUnits}</summary>
        <div class="stack inner">
          <EntryFields form={form} names={t.fields} paths={otherPaths(units, priceColumns)} />
        </div>
      </details>
      <p class="hint">{t.hint}</p>
    </FormDialog>
  )
}

export type Model = Reply<"admin-models", "list">["models"][number]
type TargetPrice = Model["prices"][number]

/** The fields of a price that the list shows. */
const shownFields = ["input", "cached_input", "output", "per_request"] as const

/** The prices of the targets of a model: one for each entry that gave it. */
const distinctPrices = (prices: ReadonlyArray<TargetPrice>): ReadonlyArray<TargetPrice> => [
  ...new Map(prices.map((price) => [price.entry ?? `${price.target} without`, price])).values()
]

/** What there is to say of a price: the entry that gave it, since when, and the one that follows by its date. */
const notesOf = (price: TargetPrice, entries: Prices, t: Texts["models"]): ReadonlyArray<string> => {
  const entry = price.entry === null ? undefined : entries[price.entry]
  const next = entry !== undefined && isDated(entry) ? nextOf(entry, Date.now()) : undefined
  const nextParts = shownFields.flatMap((field) =>
    next?.[field] === undefined ? [] : [t.priceParts[field](String(next[field]))]
  )
  return [
    ...price.listed !== null
      ? [t.listPrice(price.listed)]
      : price.entry !== null && price.entry !== price.target
      ? [t.priceOf(price.entry)]
      : [],
    ...price.from === null ? [] : [t.since(date(Date.parse(price.from)))],
    ...next === undefined ? [] : [t.nextPrice(date(Date.parse(next.from ?? "")), nextParts.join(" · "))]
  ]
}

/** The columns of prices in the list. */
export const priceColumns = ["input", "cached_input", "output"] as const

/** The cells of a model's targets and their prices, a line for each target: the targets with what there is to say, then the columns of prices. */
export const usePriceCells = (
  { price_needed, prices, targets }: Model,
  entries: Prices,
  targetOf: (target: string) => PricedTarget | undefined,
  most: number
): ReadonlyArray<ComponentChildren> => {
  const { common, models: t } = useTexts()
  const shown = targets.slice(0, most).map((target) => ({
    target,
    price: prices.find((each) => each.target === target),
    missing: bareOf(targetOf(target) ?? { missing: [] })
  }))
  const cell = (name: (typeof priceColumns)[number]) =>
    shown.map(({ missing, price, target }) => {
      const isNeeded = price_needed && price?.entry === null
      return (
        <div key={target} class="of-line">
          {missing.some((unit) => unit === name)
            ? (
              <span title={isNeeded ? t.neededHint : undefined}>
                <Badge sign="!" tone={isNeeded ? "bad" : "warn"} text={t.missing} />
              </span>
            )
            : price?.[name] ?? "–"}
        </div>
      )
    })
  return [
    <>
      {shown.map(({ price, target }) => {
        const notes = price === undefined ? "" : [
          ...price.per_request === null ? [] : [t.priceParts.per_request(price.per_request)],
          ...notesOf(price, entries, t)
        ].join(" · ")
        return (
          <div key={target} class="of-line line">
            <code>{target}</code>
            {notes !== "" && <span class="hint rest" title={notes}>{notes}</span>}
          </div>
        )
      })}
      {targets.length > most && (
        <p class="hint" title={targets.slice(most).join("\n")}>{common.andMore(targets.length - most)}</p>
      )}
    </>,
    ...priceColumns.map(cell)
  ]
}

/** The prices of a million tokens and of a request, and what there is to say of them. */
const PriceLine = ({ entries, isNeeded, missing, price }: {
  readonly price: TargetPrice
  readonly entries: Prices
  /** A budget needs the price. */
  readonly isNeeded: boolean
  readonly missing: ReadonlyArray<string>
}) => {
  const t = useTexts().models
  const parts = shownFields.flatMap((field) => price[field] === null ? [] : [t.priceParts[field](price[field])])
  return (
    <div>
      {parts.length > 0 && <span class="nowrap">{parts.join(" · ")}</span>} {missing.length > 0
        ? (
          <span title={isNeeded ? t.neededHint : undefined}>
            <Badge
              sign="!"
              tone={isNeeded ? "bad" : "warn"}
              text={price.entry === null
                ? isNeeded ? t.needed : t.missing
                : t.missingOf(missing.map((unit) => nameOf(t.fields, unit)).join(", "))}
            />
          </span>
        )
        : parts.length === 0 && "–"}
      {notesOf(price, entries, t).map((note) => <p key={note} class="hint">{note}</p>)}
    </div>
  )
}

/** The prices of a model: one line for each entry that gave it. */
export const PriceLines = ({ entries, model, most, priced }: {
  readonly model: Model
  readonly entries: Prices
  readonly priced: ReadonlyArray<PricedTarget>
  /** The most lines. */
  readonly most: number
}) => {
  const { common } = useTexts()
  const shown = distinctPrices(model.prices)
  return (
    <>
      {shown.slice(0, most).map((price) => (
        <PriceLine
          key={price.target}
          price={price}
          entries={entries}
          isNeeded={model.price_needed && price.entry === null}
          missing={bareOf(priced.find(({ target }) => target === price.target) ?? { missing: [] })}
        />
      ))}
      {shown.length > most && <p class="hint">{common.andMore(shown.length - most)}</p>}
    </>
  )
}

/** What sets the price of each target of a model. */
export const usePriceActions = (priced: ReadonlyArray<PricedTarget>, onEdit: (editing: Editing) => void) => {
  const { common, models: t } = useTexts()
  const disabled = useLock() ?? false
  return priced.map((target) => ({
    id: target.target,
    disabled,
    text: priced.length === 1 ? t.setPrice : common.actionOn(t.setPrice, target.target),
    onClick: () => onEdit({ title: target.target, names: namesFor(target) })
  }))
}

/** The requests for a model. */
export const requestsOf = (id: string): string => linkTo("requests", undefined, { model: `"${id}"`, range: "24h" })
