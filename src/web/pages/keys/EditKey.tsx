/**
 * Changes what a key may do.
 */
import * as Exit from "effect/Exit"
import { useState } from "preact/hooks"
import { Dialog } from "../../parts/Dialog.tsx"
import { call, reload, tell } from "../../state/actions.ts"
import { causeText } from "../../state/failure.ts"
import { useTexts } from "../../state/preferences.ts"
import type { KeyItem, Window } from "./draft.ts"
import { asLocal, changesOf, windows } from "./draft.ts"

export const changedBy = ["keys", "config", "host", "usage"] as const

/** A number that was written, or `undefined` where it is none. */
const written = (text: string): number | null | undefined =>
  text.trim() === "" ? null : /^\d+$/.test(text.trim()) ? Number(text.trim()) : undefined

const NumberField = ({ label, name, value }: {
  readonly label: string
  readonly name: string
  readonly value: number | null
}) => (
  <input
    name={name}
    type="text"
    inputMode="numeric"
    autocomplete="off"
    aria-label={label}
    defaultValue={value === null ? "" : String(value)}
  />
)

export const EditKey = ({ item, onClose }: { readonly item: KeyItem; readonly onClose: () => void }) => {
  const texts = useTexts()
  const t = texts.keys
  const [failure, setFailure] = useState<string>()
  const [busy, setBusy] = useState(false)

  const save = async (event: Event) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget as HTMLFormElement)
    const text = (name: string) => String(form.get(name) ?? "")
    const numbers = new Map<string, number | null>()
    for (const name of ["max_inflight", ...windows.flatMap((window) => [`${window}.requests`, `${window}.tokens`])]) {
      const value = written(text(name))
      if (value === undefined) return setFailure(t.notNumber(text(name)))
      numbers.set(name, value)
    }
    const limits = windows.flatMap((window) => {
      const requests = numbers.get(`${window}.requests`) ?? null
      const tokens = numbers.get(`${window}.tokens`) ?? null
      return requests === null && tokens === null ? [] : [{ window, requests, tokens }]
    })
    const payload = changesOf(item, {
      name: text("name"),
      note: text("note"),
      disabled: form.get("disabled") !== null,
      expires_at: text("expires_at"),
      models: text("models"),
      max_inflight: numbers.get("max_inflight") ?? null,
      limits
    })
    if (Object.keys(payload).length === 0) return onClose()
    setBusy(true)
    setFailure(undefined)
    const exit = await call((client) => client["admin-keys"].change({ params: { id: item.id }, payload }))
    setBusy(false)
    if (Exit.isFailure(exit)) return setFailure(causeText(exit.cause))
    reload(...changedBy)
    tell(t.changed(item.preview))
    return onClose()
  }

  const limitOf = (window: Window) => item.limits.find((limit) => limit.window === window)
  return (
    <Dialog name={t.editOf(item.preview)} onClose={onClose}>
      <form class="stack" onSubmit={(event) => void save(event)}>
        <label class="field">
          <span>{t.name}</span>
          <input name="name" type="text" autocomplete="off" defaultValue={item.name ?? ""} />
        </label>
        <label class="field">
          <span>{t.note}</span>
          <input name="note" type="text" autocomplete="off" defaultValue={item.note ?? ""} />
        </label>
        <div class="row">
          <label class="field">
            <span>{t.expires}</span>
            <input name="expires_at" type="datetime-local" defaultValue={asLocal(item.expires_at)} />
          </label>
          <label class="field">
            <span>{t.atOnce}</span>
            <input
              name="max_inflight"
              type="text"
              inputMode="numeric"
              autocomplete="off"
              defaultValue={item.max_inflight === null ? "" : String(item.max_inflight)}
            />
          </label>
        </div>
        <label class="field">
          <span>{t.models}</span>
          <textarea
            name="models"
            class="code short"
            rows={2}
            spellcheck={false}
            placeholder={t.everyModel}
            defaultValue={(item.models ?? []).join("\n")}
          />
        </label>
        <div class="table-box compact" role="group" aria-label={t.limits} tabIndex={0}>
          <table aria-label={t.limits}>
            <thead>
              <tr>
                <th scope="col">{t.limits}</th>
                <th scope="col">{t.requests}</th>
                <th scope="col">{t.tokens}</th>
              </tr>
            </thead>
            <tbody>
              {windows.map((window) => (
                <tr key={window}>
                  <th scope="row" class="nowrap">{t.windows[window]}</th>
                  <td>
                    <NumberField
                      name={`${window}.requests`}
                      label={t.requestsOf(t.windows[window])}
                      value={limitOf(window)?.requests ?? null}
                    />
                  </td>
                  <td>
                    <NumberField
                      name={`${window}.tokens`}
                      label={t.tokensOf(t.windows[window])}
                      value={limitOf(window)?.tokens ?? null}
                    />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
        <label class="check">
          <input name="disabled" type="checkbox" defaultChecked={item.disabled} />
          <span>{t.disabledField}</span>
        </label>
        {failure === undefined ? null : <p class="notice bad" role="alert">{failure}</p>}
        <div class="actions end">
          <button type="button" onClick={onClose}>{texts.common.cancel}</button>
          <button type="submit" class="primary" disabled={busy}>{texts.common.save}</button>
        </div>
      </form>
    </Dialog>
  )
}
