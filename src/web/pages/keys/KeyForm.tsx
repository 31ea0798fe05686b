/**
 * The fields of a key, and the dialogs that add and change one.
 */
import * as Exit from "effect/Exit"
import { useMemo, useState } from "preact/hooks"
import { EntryField, type EntryForm, otherPaths, useEntry, WithFields } from "../../forms/Entry.tsx"
import { FieldInput, useRefusal } from "../../forms/FieldInput.tsx"
import { type Entry, type FormField, plainName } from "../../forms/fields.ts"
import { Dialog, FormDialog } from "../../parts/Dialog.tsx"
import { Check, type ReadField, TextField } from "../../parts/Form.tsx"
import { Row, Table, Tick } from "../../parts/Table.tsx"
import { attempt, call, report } from "../../state/actions.ts"
import { useCurrency } from "../../state/currency.ts"
import { causeText } from "../../state/failure.ts"
import { useTexts } from "../../state/preferences.ts"
import { reload } from "../../state/reads.ts"
import { Access } from "./Access.tsx"
import { entryOf, formFields, limitPath, limitRules, type LimitTable, limitTable, payloadOf } from "./draft.ts"
import type { KeyItem } from "./keys.ts"

export const changedBy = ["keys", "config", "host"] as const

/** The field of a limit. */
const Limit = ({ form, kind, window }: {
  readonly form: EntryForm
  readonly kind: string
  readonly window: string
}) => {
  const t = useTexts().keys
  const path = limitPath(window, kind)
  const field = form.fields.find((each) => each.path === path)!
  const refusal = useRefusal()(field, form.text(path))
  return (
    <>
      <FieldInput
        field={field}
        text={form.text(path)}
        choice={plainName}
        aria-label={t.limitOf(kind, t.windowOf(window))}
        aria-invalid={refusal !== undefined}
        title={refusal ?? field.description}
        onText={(text) => form.set(path, text)}
        onBlur={() => form.separate(path)}
      />
      {refusal !== undefined && <span class="hint refused">{refusal}</span>}
    </>
  )
}

/** The field of what the limits of a window do. */
const Rule = ({ form, rule, window }: {
  readonly form: EntryForm
  readonly rule: (typeof limitRules)[number]
  readonly window: string
}) => {
  const t = useTexts().keys
  const path = limitPath(window, rule)
  const shared = {
    "aria-label": t.limitOf(rule, t.windowOf(window)),
    title: form.fields.find((each) => each.path === path)?.description
  }
  return rule === "strict"
    ? (
      <Tick>
        <input
          {...shared}
          type="checkbox"
          checked={form.text(path) === "true"}
          onChange={(event) => form.set(path, String(event.currentTarget.checked))}
        />
      </Tick>
    )
    : (
      <input
        {...shared}
        type="text"
        class="code"
        autocomplete="off"
        spellcheck={false}
        value={form.text(path)}
        onInput={(event) => form.set(path, event.currentTarget.value)}
      />
    )
}

const Limits = ({ currency, form, table: { kinds, windows } }: {
  readonly form: EntryForm
  readonly table: LimitTable
  readonly currency: string | undefined
}) => {
  const t = useTexts().keys
  const shown = kinds.filter((kind) => kind !== "cost" || currency !== undefined)
  return (
    <Table
      name={t.limits}
      compact
      columns={[
        { name: t.limits, rank: 1, class: "nowrap" },
        ...[
          ...shown.map((kind) => kind === "cost" ? t.costIn(currency ?? "") : t.kindOf(kind)),
          ...limitRules.map(t.kindOf)
        ].map((name) => ({ name, rank: 2 } as const))
      ]}
      rows={windows.length}
      empty=""
    >
      {windows.map((window) => (
        <Row
          key={window}
          cells={[
            t.windowOf(window),
            ...shown.map((kind) => <Limit key={kind} form={form} kind={kind} window={window} />),
            ...limitRules.map((rule) => <Rule key={rule} form={form} rule={rule} window={window} />)
          ]}
        />
      ))}
    </Table>
  )
}

interface Editing {
  readonly fields: ReadonlyArray<FormField>
  readonly onClose: () => void
}

const noEntry: Entry = {}

/** The form of a key; of a new one without an item. */
const useKeyForm = (fields: ReadonlyArray<FormField>, item?: KeyItem) => {
  const form = useEntry(useMemo(() => formFields(fields), []), item === undefined ? noEntry : entryOf(item))
  return { form, changes: () => payloadOf(form.changes(), form.values()) }
}

const placed = ["name", "label", "models", "limits", "expires_at", "disabled"]

const Fields = ({ currency, fields, form, isNew = false }: {
  readonly currency: string | undefined
  readonly fields: ReadonlyArray<FormField>
  readonly form: EntryForm
  readonly isNew?: boolean
}) => {
  const t = useTexts().keys
  const shown = { form, names: t.fields }
  const rest = otherPaths(fields, placed).map((path) => <EntryField key={path} {...shown} path={path} />)
  return (
    <>
      <EntryField {...shown} path="name" placeholder={t.nameHint} />
      <EntryField {...shown} path="label" />
      <EntryField {...shown} path="models" rows={2} placeholder={t.everyModel} />
      <Limits currency={currency} form={form} table={limitTable(fields)} />
      <EntryField {...shown} path="expires_at" />
      {isNew
        ? (
          <details>
            <summary>{t.more}</summary>
            <div class="stack">
              {rest}
              <TextField
                label={t.ownKey}
                name="key"
                class="code"
                spellcheck={false}
                placeholder={t.generatedHint}
              />
            </div>
          </details>
        )
        : (
          <>
            {rest}
            <Check
              label={t.fields("disabled") ?? ""}
              checked={form.text("disabled") === "true"}
              onChange={(event) => form.set("disabled", String(event.currentTarget.checked))}
            />
          </>
        )}
    </>
  )
}

const KeyEditor = ({ fields, item, name, onClose }: Editing & { readonly item: KeyItem; readonly name: string }) => {
  const { keys: t, settings } = useTexts()
  const currency = useCurrency()
  const { changes, form } = useKeyForm(fields, item)
  const save = async () => {
    if (form.isFaulty) return settings.refused
    const payload = changes()
    if (Object.keys(payload).length === 0) return undefined
    return attempt((client) => client["admin-keys"].change({ params: { id: item.id }, payload }), {
      done: t.changed(item.name ?? item.preview),
      subjects: changedBy
    })
  }
  return (
    <FormDialog wide name={name} onClose={onClose} onSave={save}>
      <Fields currency={currency} fields={fields} form={form} />
    </FormDialog>
  )
}

export const EditKey = ({ item, onClose }: Pick<Editing, "onClose"> & { readonly item: KeyItem }) => {
  const { common, keys: t } = useTexts()
  const name = common.actionOn(t.edit, item.name ?? item.preview)
  return (
    <WithFields of="keys" name={name} onClose={onClose}>
      {(fields) => <KeyEditor fields={fields} item={item} name={name} onClose={onClose} />}
    </WithFields>
  )
}

interface Made {
  readonly name: string
  readonly key: string
  readonly model: string | undefined
}

/** The new key, once. */
const MadeKey = ({ made: { key, model, name }, onClose }: { readonly made: Made; readonly onClose: () => void }) => {
  const { common, keys: t } = useTexts()
  return (
    <Dialog wide name={t.ready(name)} onClose={onClose}>
      <p class="notice warn">{t.copyNow}</p>
      <Access keyText={key} model={model} />
      <div class="actions">
        <button type="button" class="primary" onClick={onClose}>{common.close}</button>
      </div>
    </Dialog>
  )
}

/** The new key is shown in place of the form. */
const stay = (): void => undefined

/** Asks for a new key's fields, then shows the key. */
const KeyMaker = ({ fields, onClose }: Editing) => {
  const { keys: t, settings } = useTexts()
  const currency = useCurrency()
  const { changes, form } = useKeyForm(fields)
  const [made, setMade] = useState<Made>()
  const add = async (read: ReadField) => {
    if (form.isFaulty) return settings.refused
    const own = read("key").trim()
    const exit = await call((client) =>
      client["admin-keys"].add({
        payload: { ...(own === "" ? { generate: true } : { key: own }), ...changes() }
      })
    )
    const arrived = reload(...changedBy)
    if (Exit.isFailure(exit)) return causeText(exit.cause)
    await arrived
    const { key = own, models, name, preview } = exit.value
    report(t.added(name ?? preview))
    setMade({ key, name: name ?? preview, model: models?.[0] })
    return undefined
  }
  if (made !== undefined) return <MadeKey made={made} onClose={onClose} />
  return (
    <FormDialog wide name={t.newKey} action={t.create} onClose={onClose} onSave={add} onSaved={stay}>
      <Fields isNew currency={currency} fields={fields} form={form} />
    </FormDialog>
  )
}

export const NewKey = ({ onClose }: Pick<Editing, "onClose">) => (
  <WithFields of="keys" name={useTexts().keys.newKey} onClose={onClose}>
    {(fields) => <KeyMaker fields={fields} onClose={onClose} />}
  </WithFields>
)
