/**
 * Dialogs: the browser's own, which keep the focus in them and give it back.
 */
import type { ComponentChildren } from "preact"
import { useEffect, useId, useRef, useState } from "preact/hooks"
import { useTexts } from "../state/preferences.ts"

/** A dialog that is open as long as it is drawn. Escape and a click beside it call `onClose`. */
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
      // Where the opener is gone, the page's heading is next.
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

/** Asks before something is deleted. */
export const DeleteDialog = ({ children, label, name, onClose, onDelete }: {
  /** What is deleted. */
  readonly name: string
  /** In the place of `Delete <name>`. */
  readonly label?: string
  readonly children?: ComponentChildren
  readonly onClose: () => void
  readonly onDelete: () => Promise<unknown>
}) => {
  const t = useTexts()
  const [busy, setBusy] = useState(false)
  return (
    <Dialog name={label ?? t.common.deleteOf(name)} onClose={onClose}>
      <p>{children ?? t.common.deleteAsk}</p>
      <div class="actions">
        <button type="button" onClick={onClose}>{t.common.cancel}</button>
        <button
          type="button"
          class="danger"
          disabled={busy}
          onClick={() => {
            setBusy(true)
            void onDelete().then(onClose)
          }}
        >
          {t.common.delete}
        </button>
      </div>
    </Dialog>
  )
}
