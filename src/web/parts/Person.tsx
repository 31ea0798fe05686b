/**
 * Who is signed in, at which gateway and until when, and behind it the preferences and the way out.
 */
import { useId, useState } from "preact/hooks"
import { report } from "../state/actions.ts"
import { base } from "../state/client.ts"
import { useAtom } from "../state/registry.ts"
import { sessionAtom, signOut } from "../state/session.ts"
import { useTexts } from "../state/texts.ts"
import { when } from "./format.ts"
import { Icon, Sign } from "./Icon.tsx"
import { Preferences } from "./Preferences.tsx"

const leave = async (): Promise<void> => {
  const reason = await signOut()
  if (reason !== undefined) report(reason, true)
}

export const Person = () => {
  const t = useTexts().common
  const { name, until } = useAtom(sessionAtom)
  const [open, setOpen] = useState(false)
  const id = useId()
  return (
    <div class="person">
      <div id={id} class="stack" hidden={!open}>
        <Preferences />
        {until !== undefined && <p class="hint">{t.signedInUntil(when(until))}</p>}
        <button type="button" onClick={() => void leave()}>{t.signOut}</button>
      </div>
      <button type="button" aria-expanded={open} aria-controls={id} onClick={() => setOpen(!open)}>
        <Icon name="person" />
        <span class="who">
          <span class="clip">{name ?? t.adminKey}</span>
          <span class="hint clip">{new URL(base).host}</span>
        </span>
        <span class="sr-only">{t.preferences}</span>
        <Sign of="▾" />
      </button>
    </div>
  )
}
