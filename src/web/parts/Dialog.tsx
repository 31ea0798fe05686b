/**
 * Dialogs: the browser's own, which keep the focus inside and give it back.
 */
import { type ComponentChildren, createContext } from "preact"
import { useContext, useEffect, useId, useRef, useState } from "preact/hooks"
import { useTexts } from "../state/texts.ts"
import { Failure, Form, type ReadField, useWork } from "./Form.tsx"

/** Whether what the dialogs here change was deleted by somebody else. */
export const GoneContext = createContext(false)

/** A dialog that is open while it is drawn. Escape calls `onClose`. */
export const Dialog = ({ children, name, onClose, wide = false }: {
  readonly name: string
  readonly onClose: () => void
  readonly children: ComponentChildren
  readonly wide?: boolean
}) => {
  const ref = useRef<HTMLDialogElement>(null)
  const id = useId()
  const isGone = useContext(GoneContext)
  const t = useTexts()
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
      onClose={() => {
        // A browser may close it although its cancelling was prevented. One that was removed closes too.
        if (ref.current?.isConnected === true) onClose()
      }}
    >
      <h2 id={id}>{name}</h2>
      {isGone && <p class="notice warn" role="alert">{t.nouns.gone}</p>}
      {children}
    </dialog>
  )
}

/**
 * A dialog with a form. `onSave` resolves to why the form was refused, which the dialog shows: the page behind it is out of
 * reach. It resolves to `undefined` on success, which closes the dialog.
 */
export const FormDialog = ({ action, children, name, onClose, onSave, onSaved = onClose, wide = false }: {
  readonly name: string
  /** The name of the button; by default that it saves. */
  readonly action?: string
  readonly wide?: boolean
  readonly onClose: () => void
  readonly onSave: (read: ReadField) => Promise<string | undefined>
  /** In place of closing. */
  readonly onSaved?: () => void
  readonly children: ComponentChildren
}) => {
  const t = useTexts().common
  const [failure, setFailure] = useState<string>()
  const save = async (read: ReadField) => {
    setFailure(undefined)
    const refused = await onSave(read)
    if (refused === undefined) onSaved()
    else setFailure(refused)
  }
  return (
    <Dialog name={name} onClose={onClose} wide={wide}>
      <Form onSubmit={save}>
        {(busy) => (
          <>
            {children}
            <Failure text={failure} />
            <div class="actions end">
              <button type="button" onClick={onClose}>{t.cancel}</button>
              <button type="submit" class="primary" disabled={busy}>{action ?? t.save}</button>
            </div>
          </>
        )}
      </Form>
    </Dialog>
  )
}

/** The most names that a question lists. */
const listedNames = 12

/** A question about more things than this asks for a typed word. */
const manyThings = 10

/**
 * Asks before something ends or is replaced: shows what is removed, by name and number, and asks for a typed word if it is much or
 * cannot be undone by hand.
 */
export const ConfirmDialog = ({ action, children, items = [], mustType, name, onClose, onConfirm }: {
  readonly name: string
  /** The name of the button. */
  readonly action: string
  /** The names of everything that goes. */
  readonly items?: ReadonlyArray<string>
  /** The word that must be typed; by default the number of items if there are more than 10. */
  readonly mustType?: string | undefined
  readonly onClose: () => void
  readonly onConfirm: () => Promise<unknown>
  /** What happens, in sentences. */
  readonly children?: ComponentChildren
}) => {
  const t = useTexts().common
  const [typed, setTyped] = useState("")
  const [busy, start] = useWork(() => onConfirm().then(onClose))
  const word = mustType ?? (items.length > manyThings ? String(items.length) : undefined)
  const isReady = word === undefined || typed.trim() === word
  return (
    <Dialog name={name} onClose={onClose}>
      {children !== undefined && <div class="stack">{children}</div>}
      {items.length > 1 && (
        <ul class="names" tabIndex={0}>
          {items.slice(0, listedNames).map((item) => <li key={item}>{item}</li>)}
          {items.length > listedNames && <li class="hint">{t.andMore(items.length - listedNames)}</li>}
        </ul>
      )}
      {word !== undefined && (
        <label class="field">
          <span>{t.typeToConfirm(word)}</span>
          <input
            type="text"
            autocomplete="off"
            spellcheck={false}
            value={typed}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
        </label>
      )}
      <div class="actions">
        <button type="button" onClick={onClose}>{t.cancel}</button>
        <button type="button" class="danger" disabled={busy || !isReady} onClick={() => start()}>{action}</button>
      </div>
    </Dialog>
  )
}

/** Asks before something is deleted. `name` is what is deleted, and `items` the names if it is several things. */
export const DeleteDialog = ({ children, items, name, onClose, onDelete }: {
  readonly name: string
  readonly items?: ReadonlyArray<string>
  readonly children?: ComponentChildren
  readonly onClose: () => void
  readonly onDelete: () => Promise<unknown>
}) => {
  const t = useTexts().common
  return (
    <ConfirmDialog
      name={t.actionOn(t.delete, name)}
      action={t.delete}
      {...items === undefined ? {} : { items }}
      onClose={onClose}
      onConfirm={onDelete}
    >
      <p>{children ?? t.deleteAsk}</p>
    </ConfirmDialog>
  )
}
