/**
 * The fields of a key, and the dialogs that add and change one.
 */
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as AsyncResult from "effect/reactivity/AsyncResult"
import { useState } from "preact/hooks"
import { Dialog, FormDialog } from "../../parts/Dialog.tsx"
import { Check, Failure, Field, Form, type ReadField, TextArea, TextField } from "../../parts/Form.tsx"
import { number } from "../../parts/format.ts"
import { Table } from "../../parts/Table.tsx"
import { attempt, call, reload, report } from "../../state/actions.ts"
import { Admin } from "../../state/client.ts"
import { causeText } from "../../state/failure.ts"
import { useTexts } from "../../state/preferences.ts"
import { useAtom } from "../../state/registry.ts"
import { Access } from "./Access.tsx"
import { asLocal, changesOf, limitKinds, newKey, readDraft, wholeNumber, windows } from "./draft.ts"
import type { KeyItem } from "./keys.ts"

export const changedBy = ["keys", "config", "host"] as const

/** The usage reply names the currency. */
const usageAtom = Admin.query("admin-usage", "query", { query: { by: "day" }, reactivityKeys: ["config"] })

/** The configured currency; `undefined` without one. */
export const useCurrency = (): string | undefined =>
  Option.getOrUndefined(AsyncResult.value(useAtom(usageAtom)))?.currency ?? undefined

/** Shows a written whole number with separators of thousands. */
const separate = ({ currentTarget: field }: { readonly currentTarget: HTMLInputElement }): void => {
  const value = wholeNumber(field.value)
  if (typeof value === "number") field.value = number(value)
}

const shownNumber = (value: number | null | undefined): string =>
  value === null || value === undefined ? "" : number(value)

const Limits = ({ currency, limits }: {
  readonly limits: KeyItem["limits"]
  readonly currency: string | undefined
}) => {
  const t = useTexts().keys
  const kinds = limitKinds.filter((kind) => kind !== "cost" || currency !== undefined)
  return (
    <Table
      name={t.limits}
      compact
      columns={[t.limits, ...kinds.map((kind) => kind === "cost" ? t.costIn(currency ?? "") : t[kind])]}
      rows={windows.length}
      empty=""
    >
      {windows.map((window) => {
        const limit = limits.find((each) => each.window === window)
        return (
          <tr key={window}>
            <th scope="row" class="nowrap">{t.windows[window]}</th>
            {kinds.map((kind) => (
              <td key={kind}>
                <input
                  name={`${window}.${kind}`}
                  type="text"
                  inputMode={kind === "cost" ? "decimal" : "numeric"}
                  autocomplete="off"
                  aria-label={t.limitOf(kind, t.windows[window])}
                  defaultValue={kind === "cost" ? limit?.cost ?? "" : shownNumber(limit?.[kind])}
                  {...kind === "cost" ? {} : { onBlur: separate }}
                />
              </td>
            ))}
          </tr>
        )
      })}
    </Table>
  )
}

const Fields = ({ currency, item }: {
  readonly currency: string | undefined
  /** The key as it is; absent for a new one. */
  readonly item?: KeyItem
}) => {
  const t = useTexts().keys
  const now = item ?? newKey
  const rest = (
    <>
      <TextField label={t.note} name="note" defaultValue={now.note ?? ""} />
      <TextField
        label={t.atOnce}
        name="max_inflight"
        inputMode="numeric"
        defaultValue={shownNumber(now.max_inflight)}
        onBlur={separate}
      />
    </>
  )
  return (
    <>
      <TextField label={t.name} name="name" placeholder={t.nameHint} defaultValue={now.name ?? ""} />
      <TextArea
        label={t.models}
        name="models"
        class="code short"
        rows={2}
        spellcheck={false}
        placeholder={t.everyModel}
        defaultValue={(now.models ?? []).join("\n")}
      />
      <Limits currency={currency} limits={now.limits} />
      <Field label={t.expires}>
        <input name="expires_at" type="datetime-local" defaultValue={asLocal(now.expires_at)} />
      </Field>
      {item === undefined
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
            <Check label={t.disabledField} name="disabled" defaultChecked={now.disabled} />
          </>
        )}
    </>
  )
}

export const EditKey = ({ item, onClose }: { readonly item: KeyItem; readonly onClose: () => void }) => {
  const { common, keys: t } = useTexts()
  const currency = useCurrency()
  const save = async (read: ReadField) => {
    const { draft, wrong } = readDraft(read, currency !== undefined, item.limits)
    if (wrong !== undefined) return t.notNumber(wrong)
    const payload = changesOf(item, draft)
    if (Object.keys(payload).length === 0) return undefined
    return attempt((client) => client["admin-keys"].change({ params: { id: item.id }, payload }), {
      done: t.changed(item.name ?? item.preview),
      subjects: changedBy
    })
  }
  return (
    <FormDialog name={common.actionOn(t.edit, item.name ?? item.preview)} onClose={onClose} onSave={save}>
      <Fields currency={currency} item={item} />
    </FormDialog>
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

/** Asks for a new key's fields, then shows the key. */
export const NewKey = ({ onClose }: { readonly onClose: () => void }) => {
  const { common, keys: t } = useTexts()
  const currency = useCurrency()
  const [made, setMade] = useState<Made>()
  const [failure, setFailure] = useState<string>()
  const add = async (read: ReadField) => {
    const { draft, wrong } = readDraft(read, currency !== undefined)
    setFailure(wrong === undefined ? undefined : t.notNumber(wrong))
    if (wrong !== undefined) return
    const own = read("key").trim()
    const exit = await call((client) =>
      client["admin-keys"].add({
        payload: { ...(own === "" ? { generate: true } : { key: own }), ...changesOf(newKey, draft) }
      })
    )
    reload(...changedBy)
    if (Exit.isFailure(exit)) return setFailure(causeText(exit.cause))
    const { key = own, models, name, preview } = exit.value
    report(t.added(name ?? preview))
    return setMade({ key, name: name ?? preview, model: models?.[0] })
  }
  if (made !== undefined) return <MadeKey made={made} onClose={onClose} />
  return (
    <Dialog name={t.newKey} onClose={onClose}>
      <Form onSubmit={add}>
        {(busy) => (
          <>
            <Fields currency={currency} />
            <Failure text={failure} />
            <div class="actions end">
              <button type="button" onClick={onClose}>{common.cancel}</button>
              <button type="submit" class="primary" disabled={busy}>{t.create}</button>
            </div>
          </>
        )}
      </Form>
    </Dialog>
  )
}
