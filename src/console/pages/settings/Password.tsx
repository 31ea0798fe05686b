/**
 * Changes the admin password. All sessions end with it.
 */
import { useRef, useState } from "preact/hooks"
import { act } from "../../state/actions.ts"
import { signedOut } from "../../state/client.ts"
import { useTexts } from "../../state/preferences.ts"

export const Password = () => {
  const t = useTexts().settings
  const field = useRef<HTMLInputElement>(null)
  const [busy, setBusy] = useState(false)
  const change = async (event: Event) => {
    event.preventDefault()
    setBusy(true)
    const reply = await act(
      (client) => client["admin-settings"].password({ payload: { new_password: field.current?.value ?? "" } }),
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
          <span>{t.newPassword}</span>
          <input ref={field} type="password" autocomplete="new-password" required aria-describedby="password-hint" />
        </label>
        <button type="submit" disabled={busy}>{t.changePassword}</button>
      </div>
      <p class="hint" id="password-hint">{t.passwordHint}</p>
    </form>
  )
}
