/**
 * Dialogs of one account.
 */
import { ConfirmDialog, FormDialog } from "../../parts/Dialog.tsx"
import { TextField } from "../../parts/Form.tsx"
import { act, attempt, report } from "../../state/actions.ts"
import type { AccountItem } from "../../state/client.ts"
import { accountName } from "../../state/names.ts"
import { useTexts } from "../../state/texts.ts"

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
