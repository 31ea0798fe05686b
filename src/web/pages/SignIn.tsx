/**
 * The sign-in form.
 */
import { useEffect, useRef, useState } from "preact/hooks"
import { Failure, Field, Form } from "../parts/Form.tsx"
import { leaveStart } from "../parts/Heading.tsx"
import { Preferences } from "../parts/Preferences.tsx"
import { useTexts } from "../state/preferences.ts"
import { signIn } from "../state/session.ts"

/** `ended`: the previous session was ended by the gateway. */
export const SignIn = ({ ended }: { readonly ended: boolean }) => {
  const t = useTexts()
  const field = useRef<HTMLInputElement>(null)
  const [failure, setFailure] = useState<string>()
  useEffect(() => {
    document.title = `${t.signIn.title} – ${t.common.product}`
    field.current?.focus()
  }, [t])
  useEffect(leaveStart, [])
  const submit = async () => {
    setFailure(undefined)
    const reason = await signIn(field.current?.value ?? "")
    setFailure(reason)
    if (reason !== undefined) field.current?.select()
  }
  return (
    <div class="sign-in">
      <main>
        <Form class="card" onSubmit={submit}>
          {(busy) => (
            <>
              <p class="brand">{t.common.product}</p>
              <h1>{t.signIn.title}</h1>
              {ended && failure === undefined && <p class="notice" role="status">{t.signIn.ended}</p>}
              {!globalThis.isSecureContext && <p class="notice warn">{t.signIn.inMemory}</p>}
              <Field label={t.signIn.key}>
                <input
                  ref={field}
                  type="password"
                  autocomplete="current-password"
                  required
                  aria-invalid={failure !== undefined}
                  aria-describedby="sign-in-hint"
                />
              </Field>
              <p class="hint" id="sign-in-hint">{t.signIn.hint}</p>
              <Failure text={failure} />
              <button type="submit" class="primary" disabled={busy}>{t.signIn.submit}</button>
            </>
          )}
        </Form>
        <Preferences />
      </main>
    </div>
  )
}
