/**
 * The sign-in form.
 */
import { useEffect, useRef, useState } from "preact/hooks"
import { leaveStart } from "../parts/Heading.tsx"
import { Preferences } from "../parts/Preferences.tsx"
import { useTexts } from "../state/preferences.ts"
import { signIn } from "../state/session.ts"

export const SignIn = ({ ended }: { readonly ended: boolean }) => {
  const t = useTexts()
  const field = useRef<HTMLInputElement>(null)
  const [busy, setBusy] = useState(false)
  const [failure, setFailure] = useState<string>()
  useEffect(() => {
    document.title = `${t.signIn.title} – ${t.common.product}`
    field.current?.focus()
  }, [t])
  useEffect(leaveStart, [])
  const submit = async (event: Event) => {
    event.preventDefault()
    setBusy(true)
    setFailure(undefined)
    const reason = await signIn(field.current?.value ?? "")
    setBusy(false)
    setFailure(reason)
    if (reason !== undefined) field.current?.select()
  }
  return (
    <div class="sign-in">
      <main>
        <form class="card" onSubmit={(event) => void submit(event)}>
          <p class="brand">{t.common.product}</p>
          <h1>{t.signIn.title}</h1>
          {ended && failure === undefined ? <p class="notice" role="status">{t.signIn.ended}</p> : null}
          {globalThis.isSecureContext ? null : <p class="notice warn">{t.signIn.inMemory}</p>}
          <label class="field">
            <span>{t.signIn.key}</span>
            <input
              ref={field}
              type="password"
              autocomplete="current-password"
              required
              aria-invalid={failure !== undefined}
              aria-describedby="sign-in-hint"
            />
          </label>
          <p class="hint" id="sign-in-hint">{t.signIn.hint}</p>
          {failure === undefined ? null : <p class="notice bad" role="alert">{failure}</p>}
          <button type="submit" class="primary" disabled={busy}>{t.signIn.submit}</button>
        </form>
      </main>
      <Preferences />
    </div>
  )
}
