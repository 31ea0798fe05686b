/**
 * Copies text for the person at the page.
 */
import { tell } from "../state/actions.ts"
import { texts } from "../state/preferences.ts"

/** Copies, and tells so; where the browser refuses it, tells that. */
export const copyText = async (text: string, done: string): Promise<void> => {
  try {
    // Browsers have it for secure contexts only.
    const clipboard: Clipboard | undefined = navigator.clipboard
    await clipboard.writeText(text)
    tell(done)
  } catch {
    tell(texts().common.cannotCopy, true)
  }
}
