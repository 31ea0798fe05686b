/**
 * The dialog that changes a key.
 */
import { FormDialog } from "../../parts/Dialog.tsx"
import { Check, Field, type ReadField, TextArea, TextField } from "../../parts/Form.tsx"
import { Table } from "../../parts/Table.tsx"
import { attempt } from "../../state/actions.ts"
import { useTexts } from "../../state/preferences.ts"
import { asLocal, changesOf, windows } from "./draft.ts"
import type { KeyItem } from "./keys.ts"

export const changedBy = ["keys", "config", "host"] as const

const counts = ["requests", "tokens"] as const

/** A written number; `null` if the text is empty, and `undefined` if it is not a whole number. */
const written = (text: string): number | null | undefined =>
  text.trim() === "" ? null : /^\d+$/.test(text.trim()) ? Number(text.trim()) : undefined

export const EditKey = ({ item, onClose }: { readonly item: KeyItem; readonly onClose: () => void }) => {
  const { common, keys: t } = useTexts()
  const save = async (read: ReadField) => {
    const numbers = new Map<string, number | null>()
    for (const name of ["max_inflight", ...windows.flatMap((window) => counts.map((each) => `${window}.${each}`))]) {
      const value = written(read(name))
      if (value === undefined) return t.notNumber(read(name))
      numbers.set(name, value)
    }
    const limits = windows.flatMap((window) => {
      const requests = numbers.get(`${window}.requests`) ?? null
      const tokens = numbers.get(`${window}.tokens`) ?? null
      // The form has no field for a limit of cost, which stays.
      const cost = item.limits.find((limit) => limit.window === window)?.cost ?? null
      return requests === null && tokens === null && cost === null ? [] : [{ window, requests, tokens, cost }]
    })
    const payload = changesOf(item, {
      name: read("name"),
      note: read("note"),
      disabled: read("disabled") !== "",
      expires_at: read("expires_at"),
      models: read("models"),
      max_inflight: numbers.get("max_inflight") ?? null,
      limits
    })
    if (Object.keys(payload).length === 0) return undefined
    return attempt((client) => client["admin-keys"].change({ params: { id: item.id }, payload }), {
      done: t.changed(item.preview),
      subjects: changedBy
    })
  }
  return (
    <FormDialog name={common.actionOn(t.edit, item.preview)} onClose={onClose} onSave={save}>
      <TextField label={t.name} name="name" defaultValue={item.name ?? ""} />
      <TextField label={t.note} name="note" defaultValue={item.note ?? ""} />
      <div class="row">
        <Field label={t.expires}>
          <input name="expires_at" type="datetime-local" defaultValue={asLocal(item.expires_at)} />
        </Field>
        <TextField
          label={t.atOnce}
          name="max_inflight"
          inputMode="numeric"
          defaultValue={item.max_inflight === null ? "" : String(item.max_inflight)}
        />
      </div>
      <TextArea
        label={t.models}
        name="models"
        class="code short"
        rows={2}
        spellcheck={false}
        placeholder={t.everyModel}
        defaultValue={(item.models ?? []).join("\n")}
      />
      <Table name={t.limits} compact columns={[t.limits, t.requests, t.tokens]} rows={windows.length} empty="">
        {windows.map((window) => (
          <tr key={window}>
            <th scope="row" class="nowrap">{t.windows[window]}</th>
            {counts.map((each) => (
              <td key={each}>
                <input
                  name={`${window}.${each}`}
                  type="text"
                  inputMode="numeric"
                  autocomplete="off"
                  aria-label={each === "requests" ? t.requestsOf(t.windows[window]) : t.tokensOf(t.windows[window])}
                  defaultValue={String(item.limits.find((limit) => limit.window === window)?.[each] ?? "")}
                />
              </td>
            ))}
          </tr>
        ))}
      </Table>
      <Check label={t.disabledField} name="disabled" defaultChecked={item.disabled} />
    </FormDialog>
  )
}
