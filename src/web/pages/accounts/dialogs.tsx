/**
 * Dialogs of one account.
 */
import * as Exit from "effect/Exit"
import { useState } from "preact/hooks"
import { ConfirmDialog, FormDialog } from "../../parts/Dialog.tsx"
import { type ReadField, TextField } from "../../parts/Form.tsx"
import { act, attempt, call, report } from "../../state/actions.ts"
import type { AccountItem } from "../../state/client.ts"
import { causeText } from "../../state/failure.ts"
import { accountName } from "../../state/names.ts"
import { reload } from "../../state/reads.ts"
import { useAtom } from "../../state/registry.ts"
import { go, routeAtom } from "../../state/route.ts"
import { useTexts } from "../../state/texts.ts"
import { WhoseToken } from "./WhoseToken.tsx"

/** What is reloaded after a change of accounts. */
export const changedBy = ["accounts", "config", "host", "upstreams"] as const

/** Changes a text of an account. */
export const MarkDialog = ({ item, mark, onClose }: {
  readonly item: AccountItem
  readonly mark: "note" | "organization"
  readonly onClose: () => void
}) => {
  const t = useTexts().accounts
  const identifier = accountName(item)
  return (
    <FormDialog
      name={t.markOf(t[mark], identifier)}
      onClose={onClose}
      onSave={(read) =>
        attempt(
          (client) => client["admin-accounts"].patch({ params: { identifier }, payload: { [mark]: read(mark) } }),
          { done: t.markSaved(t[mark], identifier), subjects: changedBy }
        )}
    >
      <TextField label={t[mark]} name={mark} maxLength={200} defaultValue={item[mark] ?? ""} />
      {mark === "organization" && <p class="hint">{t.organizationHint}</p>}
    </FormDialog>
  )
}

/** What an account logs in with: `undefined` where its token comes from a source. */
export const secretOf = ({ credential, has_password }: Pick<AccountItem, "credential" | "has_password">) =>
  credential !== undefined ? undefined : has_password ? "password" : "token"

/** Gives an account another password or token. One that is known by its token has another name then. */
export const SecretDialog = ({ item, onClose, secret }: {
  readonly item: AccountItem
  readonly secret: "password" | "token"
  readonly onClose: () => void
}) => {
  const t = useTexts().accounts
  const identifier = accountName(item)
  const isShown = useAtom(routeAtom).of === identifier
  const [given, setGiven] = useState("")
  const save = async (read: ReadField) => {
    const exit = await call((client) =>
      client["admin-accounts"].patch({ params: { identifier }, payload: { [secret]: read(secret) } })
    )
    if (Exit.isFailure(exit)) return causeText(exit.cause)
    const name = accountName(exit.value.account)
    if (isShown && name !== identifier) go("accounts", name)
    await reload(...changedBy)
    report(t.secretSaved(name))
    return undefined
  }
  const isPassword = secret === "password"
  return (
    <FormDialog name={t.markOf(isPassword ? t.setPassword : t.setToken, identifier)} onClose={onClose} onSave={save}>
      <TextField
        label={isPassword ? t.newPassword : t.newToken}
        name={secret}
        class="code"
        required
        spellcheck={false}
        onInput={(event) =>
          setGiven(event.currentTarget.value)}
      />
      <WhoseToken given={isPassword ? "" : given} />
      <p class="hint">{t.secretHint}</p>
    </FormDialog>
  )
}

/** Asks before all sessions of an account are deleted at its provider, which nothing brings back. */
export const SessionsDialog = ({ item, onClose }: {
  readonly item: AccountItem
  readonly onClose: () => void
}) => {
  const t = useTexts().accounts
  const identifier = accountName(item)
  const clear = async () => {
    const reply = await act((client) => client["admin-accounts"].deleteSessions({ payload: { identifier } }), {})
    if (reply !== undefined) {
      report(reply.success ? reply.note ?? t.cleared(identifier) : `${identifier}: ${reply.message}`, !reply.success)
    }
  }
  return (
    <ConfirmDialog name={t.clearOf(identifier)} action={t.clear} onClose={onClose} onConfirm={clear}>
      <p>{t.clearAsk(identifier)}</p>
      {item.in_use > 0 && <p>{t.clearRunning(item.in_use)}</p>}
    </ConfirmDialog>
  )
}
