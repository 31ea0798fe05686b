/**
 * Copying texts, such as ids.
 */
import { copyText } from "../state/actions.ts"
import { useTexts } from "../state/texts.ts"
import { Icon } from "./Icon.tsx"

/** A small button that copies a text. `name` says what it is. */
export const CopyButton = ({ name, text }: { readonly name: string; readonly text: string }) => {
  const t = useTexts().common
  const label = t.actionOn(t.copy, name)
  return (
    <button
      type="button"
      class="quiet icon-only"
      aria-label={label}
      title={label}
      onClick={() => void copyText(text, t.copied(name))}
    >
      <Icon name="copy" />
    </button>
  )
}
