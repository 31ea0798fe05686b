/**
 * The fields of a key, and the dialogs that add and change one.
 */
import * as Exit from "effect/Exit"
import { useMemo, useState } from "preact/hooks"
import { EntryField, type EntryForm, otherPaths, useEntry, WithFields } from "../../forms/Entry.tsx"
import { asLocal, type Entry, type FormField, linesOf } from "../../forms/fields.ts"
import { Dialog, FormDialog } from "../../parts/Dialog.tsx"
import { Check, type ReadField, Select, TextField } from "../../parts/Form.tsx"
import { attempt, call, copyText, report } from "../../state/actions.ts"
import { base } from "../../state/client.ts"
import { useCurrency } from "../../state/currency.ts"
import { causeText } from "../../state/failure.ts"
import { readOf, reload } from "../../state/reads.ts"
import { useValue } from "../../state/registry.ts"
import { useTexts } from "../../state/texts.ts"
import { Access } from "./Access.tsx"
import { entryOf, formFields, limitTable, payloadOf } from "./draft.ts"
import type { KeyItem } from "./keys.ts"
import { Limits } from "./Limits.tsx"
import { messageOf } from "./snippets.ts"

export const changedBy = ["keys", "config", "host"] as const

/** The names that clients may ask for: the longest page of them. */
const modelsAtom = readOf("admin-models", "list", {
  query: { page_size: 1_000 },
  reactivityKeys: ["config", "upstreams", "routes"]
})

const noModels: ReadonlyArray<string> = []

const useModelIds = (): ReadonlyArray<string> => {
  const models = useValue(modelsAtom)?.models
  return useMemo(() => models?.flatMap(({ id, kind }) => kind === "family" ? [] : [id]) ?? noModels, [models])
}

/** From how many models on they can be searched. */
const manyModels = 12
/** The most models that are shown. */
const mostModels = 100

/** The models of a key: none that is chosen stands for all. Names that no model has now stay chosen, and others can be written. */
const Models = ({ form, ids }: { readonly form: EntryForm; readonly ids: ReadonlyArray<string> }) => {
  const { common, keys: t } = useTexts()
  const [search, setSearch] = useState("")
  const chosen = linesOf(form.text("models"))
  const found = [...new Set([...chosen, ...ids])].filter((id) => id.toLowerCase().includes(search))
  return (
    <fieldset class="stack tight">
      <legend class="label">{t.modelsOf}</legend>
      {ids.length > manyModels && (
        <TextField
          label={t.searchModels}
          spellcheck={false}
          onInput={(event) => setSearch(event.currentTarget.value.trim().toLowerCase())}
        />
      )}
      {found.length > 0 && (
        <div class="picks">
          {found.slice(0, mostModels).map((id) => (
            <Check
              key={id}
              label={id}
              checked={chosen.includes(id)}
              onChange={({ currentTarget: { checked } }) =>
                form.set("models", (checked ? [...chosen, id] : chosen.filter((each) => each !== id)).join("\n"))}
            />
          ))}
        </div>
      )}
      <p class="hint">
        {found.length > mostModels && `${common.andMore(found.length - mostModels)}. `}
        {chosen.length === 0 ? t.withoutChoice : t.chosenModels(chosen.length)}
      </p>
      <details>
        <summary>{t.otherNames}</summary>
        <EntryField form={form} names={t.fields} path="models" rows={2} placeholder={t.everyModel} />
      </details>
    </fieldset>
  )
}

/** The days after which a key may end. */
const daysLeft = ["7", "30", "90"] as const
const atTime = "time"

/** When a key ends: never, after some days, or at a time. */
const End = ({ form }: { readonly form: EntryForm }) => {
  const t = useTexts().keys
  const path = "expires_at"
  const [chosen, setChosen] = useState(form.text(path) === "" ? "" : atTime)
  return (
    <div class="row">
      <Select
        label={t.fields(path) ?? ""}
        value={chosen}
        options={[
          ["", t.neverEnds],
          ...daysLeft.map((days) => [days, t.endsIn(Number(days))] as const),
          [atTime, t.endsAt]
        ]}
        onValue={(next) => {
          setChosen(next)
          if (next !== atTime) {
            const end = new Date(Date.now() + Number(next) * 24 * 3_600_000).toISOString()
            form.set(path, next === "" ? "" : asLocal(end))
          }
        }}
      />
      {chosen === atTime && <EntryField form={form} names={() => t.endsAt} path={path} />}
    </div>
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
  const ids = useModelIds()
  const rest = otherPaths(fields, placed).map((path) => <EntryField key={path} {...shown} path={path} />)
  return (
    <>
      <EntryField {...shown} path="name" placeholder={t.nameHint} />
      <EntryField {...shown} path="label" />
      <Models form={form} ids={ids} />
      <Limits currency={currency} form={form} models={ids} table={limitTable(fields)} />
      <End form={form} />
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
        <button
          type="button"
          class="primary"
          onClick={() => void copyText(t.messageOf(messageOf({ base, key })), t.copied(t.message))}
        >
          {t.copyMessage}
        </button>
        <button type="button" onClick={onClose}>{common.close}</button>
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

/** Milliseconds that the old key still serves, by the choices of the dialog. */
const overlaps = { hour: 3_600_000, day: 24 * 3_600_000, week: 7 * 24 * 3_600_000 } as const
type Overlap = keyof typeof overlaps

/** Makes a key with the same settings, and lets the old one end after a time, in which its clients change over. */
export const RotateKey = ({ item, onClose }: Pick<Editing, "onClose"> & { readonly item: KeyItem }) => {
  const t = useTexts().keys
  const name = item.name ?? item.preview
  const [overlap, setOverlap] = useState<Overlap>("day")
  const [made, setMade] = useState<Made>()
  const rotate = async () => {
    const { class: kind, expires_at, id, label, limits, max_inflight, models, name: given, note } = item
    const settings = { class: kind, expires_at, label, limits, max_inflight, models, name: given, note }
    const set = Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== null))
    const added = await call((client) => client["admin-keys"].add({ payload: { generate: true, ...set } }))
    if (Exit.isFailure(added)) return causeText(added.cause)
    const ends = Math.min(Date.now() + overlaps[overlap], expires_at === null ? Infinity : Date.parse(expires_at))
    const ended = await call((client) =>
      client["admin-keys"].change({ params: { id }, payload: { expires_at: new Date(ends).toISOString() } })
    )
    await reload(...changedBy)
    // The new key is shown in any case: no other reply has it.
    report(Exit.isFailure(ended) ? t.notEnded(name, causeText(ended.cause)) : t.rotated(name), Exit.isFailure(ended))
    setMade({ key: added.value.key ?? "", name, model: models?.[0] })
    return undefined
  }
  if (made !== undefined) return <MadeKey made={made} onClose={onClose} />
  return (
    <FormDialog name={t.rotateOf(name)} action={t.rotate} onClose={onClose} onSave={rotate} onSaved={stay}>
      <p>{t.rotateHint}</p>
      <Select<Overlap>
        label={t.oldServes}
        value={overlap}
        options={(Object.keys(overlaps) as ReadonlyArray<Overlap>).map((each) => [each, t.overlaps[each]] as const)}
        onValue={setOverlap}
      />
    </FormDialog>
  )
}
