/**
 * The list of the keys that do something on the page.
 */
import type { Shortcut } from "../state/shortcuts.ts"
import { useTexts } from "../state/texts.ts"
import { Dialog } from "./Dialog.tsx"

export const Shortcuts = ({ of, onClose }: {
  readonly of: ReadonlyArray<Shortcut>
  readonly onClose: () => void
}) => {
  const t = useTexts().common
  return (
    <Dialog name={t.keysOf} onClose={onClose}>
      <dl class="facts">
        {of.map(({ keys, text }) => (
          <>
            <dt key={`${keys} keys`}>
              <kbd>{keys.replace("ctrl+k", "Ctrl K")}</kbd>
            </dt>
            <dd key={keys}>{text}</dd>
          </>
        ))}
      </dl>
      <div class="actions">
        <button type="button" class="primary" onClick={onClose}>{t.close}</button>
      </div>
    </Dialog>
  )
}
