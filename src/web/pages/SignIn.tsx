/**
 * The sign-in form, as a page, and as a dialog above the page whose session has ended.
 */
import type { ComponentChildren } from "preact"
import { useEffect, useRef, useState } from "preact/hooks"
import { Dialog } from "../parts/Dialog.tsx"
import { Failure, Field, Form } from "../parts/Form.tsx"
import { leaveStart } from "../parts/Heading.tsx"
import { Mark } from "../parts/Icon.tsx"
import { Preferences } from "../parts/Preferences.tsx"
import { base } from "../state/client.ts"
import { signIn } from "../state/session.ts"
import { useTexts } from "../state/texts.ts"

const [shown, hidden] = [{ type: "text" }, { type: "password" }] as const

/** The field of the key and the button below it. `children` stand above; `class` is the form's. */
const KeyForm = ({ children, class: kind = "" }: {
  readonly class?: string
  readonly children: (isRefused: boolean) => ComponentChildren
}) => {
  const t = useTexts()
  const field = useRef<HTMLInputElement>(null)
  const [failure, setFailure] = useState<string>()
  const [isShown, setShown] = useState(false)
  useEffect(() => field.current?.focus(), [])
  const submit = async () => {
    setFailure(undefined)
    const reason = await signIn(field.current?.value ?? "")
    setFailure(reason)
    if (reason !== undefined) field.current?.select()
  }
  return (
    <Form class={kind} onSubmit={submit}>
      {(busy) => (
        <>
          {children(failure !== undefined)}
          {!globalThis.isSecureContext && <p class="notice warn">{t.signIn.inMemory}</p>}
          <div class="with-button">
            <Field label={t.signIn.key}>
              <input
                ref={field}
                {...isShown ? shown : hidden}
                autocomplete="current-password"
                spellcheck={false}
                required
                aria-invalid={failure !== undefined}
                aria-describedby="sign-in-hint"
              />
            </Field>
            <button type="button" aria-pressed={isShown} onClick={() => setShown(!isShown)}>{t.signIn.show}</button>
          </div>
          <p class="hint" id="sign-in-hint">{t.signIn.hint}</p>
          <Failure text={failure} />
          <button type="submit" class="primary" disabled={busy}>{t.signIn.submit}</button>
        </>
      )}
    </Form>
  )
}

/** The page of who is not signed in. */
export const SignIn = () => {
  const t = useTexts()
  useEffect(() => {
    document.title = `${t.signIn.title} – ${t.common.product}`
  }, [t])
  useEffect(leaveStart, [])
  return (
    <div class="sign-in">
      <main>
        <KeyForm class="card">
          {() => (
            <>
              <p class="brand">
                <Mark />
                {t.common.product}
              </p>
              <h1>{t.signIn.title}</h1>
              <p class="hint">{t.signIn.at(new URL(base).host)}</p>
            </>
          )}
        </KeyForm>
        <Preferences />
      </main>
    </div>
  )
}

/** Signing in again after the gateway ended the session: the page below keeps what was typed, chosen and opened. Nothing else closes it. */
export const SignInAgain = () => {
  const t = useTexts()
  const [closed, setClosed] = useState(0)
  // A browser closes every dialog of the page on Escape without a click before it, the form below included.
  useEffect(() => {
    const stay = (event: KeyboardEvent) => event.key === "Escape" && event.preventDefault()
    addEventListener("keydown", stay)
    return () => removeEventListener("keydown", stay)
  }, [])
  return (
    <Dialog key={closed} name={t.signIn.title} onClose={() => setClosed(closed + 1)}>
      <KeyForm class="stack">
        {(isRefused) => !isRefused && <p class="notice" role="status">{t.signIn.ended}</p>}
      </KeyForm>
    </Dialog>
  )
}
