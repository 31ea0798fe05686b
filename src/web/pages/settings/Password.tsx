/**
 * Changes the admin password. All sessions end with it.
 */
import { useRef, useState } from "preact/hooks"
import { act } from "../../state/actions.ts"
import { signedOut } from "../../state/client.ts"
import { useTexts } from "../../state/preferences.ts"

export const Password = () => {
  const t = useTexts().settings
  const present = useRef<HTMLInputElement>(null)
  const chosen = useRef<HTMLInputElement>(null)
  const [busy, setBusy] = useState(false)
  const change = async (event: Event) => {
    event.preventDefault()
    setBusy(true)
    const reply = await act(
      (client) =>
        client["admin-settings"].password({
          payload: { current_password: present.current?.value ?? "", new_password: chosen.current?.value ?? "" }
        }),
      { done: () => t.passwordChanged }
    )
    setBusy(false)
    if (reply?.force_relogin === true) signedOut()
  }
  return (
    <form class="card" onSubmit={(event) => void change(event)}>
      <h2>{t.password}</h2>
      <div class="row">
        <label class="field">
          <span>{t.presentPassword}</span>
          <input ref={present} type="password" autocomplete="current-password" required />
        </label>
        <label class="field">
          <span>{t.newPassword}</span>
          <input ref={chosen} type="password" autocomplete="new-password" required aria-describedby="password-hint" />
        </label>
        <button type="submit" disabled={busy}>{t.changePassword}</button>
      </div>
      <p class="hint" id="password-hint">{t.passwordHint}</p>
    </form>
  )
}
