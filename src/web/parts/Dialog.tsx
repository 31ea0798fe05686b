/**
 * Dialogs: the browser's own, which keep the focus inside and give it back.
 */
import type { ComponentChildren } from "preact"
import { useEffect, useId, useRef, useState } from "preact/hooks"
import { useTexts } from "../state/preferences.ts"
import { Failure, Form, type ReadField, useWork } from "./Form.tsx"

/** A dialog that is open while it is drawn. Escape calls `onClose`. */
export const Dialog = ({ children, name, onClose, wide = false }: {
  readonly name: string
  readonly onClose: () => void
  readonly children: ComponentChildren
  readonly wide?: boolean
}) => {
  const ref = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    const dialog = ref.current
    if (dialog === null) return
    const before = document.activeElement
    dialog.showModal()
    dialog.querySelector<HTMLElement>("input:not([type=hidden]), textarea, select, button")?.focus()
    return () => {
      dialog.close()
      // If the opener is gone, the page's heading takes the focus.
      const back = before instanceof HTMLElement && before.isConnected && before !== document.body
        ? before
        : document.querySelector<HTMLElement>("h1")
      back?.focus()
    }
  }, [])
  return (
    <dialog
      ref={ref}
      class={wide ? "wide" : ""}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault()
        onClose()
      }}
    >
      <h2 id={id}>{name}</h2>
      {children}
    </dialog>
  )
}

/**
 * A dialog with a form. `onSave` resolves to why the form was refused, which the dialog shows: the page behind it is out of
 * reach. It resolves to `undefined` on success, which closes the dialog.
 */
export const FormDialog = ({ children, name, onClose, onSave }: {
  readonly name: string
  readonly onClose: () => void
  readonly onSave: (read: ReadField) => Promise<string | undefined>
  readonly children: ComponentChildren
}) => {
  const t = useTexts().common
  const [failure, setFailure] = useState<string>()
  const save = async (read: ReadField) => {
    setFailure(undefined)
    const refused = await onSave(read)
    if (refused === undefined) onClose()
    else setFailure(refused)
  }
  return (
    <Dialog name={name} onClose={onClose}>
      <Form onSubmit={save}>
        {(busy) => (
          <>
            {children}
            <Failure text={failure} />
            <div class="actions end">
              <button type="button" onClick={onClose}>{t.cancel}</button>
              <button type="submit" class="primary" disabled={busy}>{t.save}</button>
            </div>
          </>
        )}
      </Form>
    </Dialog>
  )
}

/** Asks before something is deleted. `name` is what is deleted. */
export const DeleteDialog = ({ children, name, onClose, onDelete }: {
  readonly name: string
  readonly children?: ComponentChildren
  readonly onClose: () => void
  readonly onDelete: () => Promise<unknown>
}) => {
  const t = useTexts().common
  const [busy, start] = useWork(() => onDelete().then(onClose))
  return (
    <Dialog name={t.actionOn(t.delete, name)} onClose={onClose}>
      <p>{children ?? t.deleteAsk}</p>
      <div class="actions">
        <button type="button" onClick={onClose}>{t.cancel}</button>
        <button type="button" class="danger" disabled={busy} onClick={() => start()}>{t.delete}</button>
      </div>
    </Dialog>
  )
}
