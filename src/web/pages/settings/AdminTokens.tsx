/**
 * Tokens of machines and viewers for the admin API.
 */
import { useState } from "preact/hooks"
import {
  choiceName,
  EntryField,
  EntryFields,
  nameOf,
  otherPaths,
  useEntry,
  useFields,
  WithFields
} from "../../forms/Entry.tsx"
import type { Entry, FormField } from "../../forms/fields.ts"
import { Badge } from "../../parts/Badge.tsx"
import { ChangeButton, useLock } from "../../parts/configuration.tsx"
import { CopyButton } from "../../parts/Copy.tsx"
import { ConfirmDialog, Dialog, FormDialog } from "../../parts/Dialog.tsx"
import { exactTime } from "../../parts/format.ts"
import { Section } from "../../parts/Heading.tsx"
import { Loaded } from "../../parts/Loaded.tsx"
import { RowButton, Table } from "../../parts/Table.tsx"
import { act } from "../../state/actions.ts"
import type { Reply } from "../../state/client.ts"
import { readOf } from "../../state/reads.ts"
import { useTexts } from "../../state/texts.ts"

type Token = Reply<"admin-tokens", "list">["tokens"][number]

const changedBy = ["settings", "config", "host"] as const

const tokensAtom = readOf("admin-tokens", "list", { reactivityKeys: ["settings", "config"] })

const noEntry: Entry = {}
const placed = ["name", "role"]

/** The secret is shown in place of the form. */
const stay = (): void => undefined

/** Makes a token, and shows its secret once. */
const TokenMaker = ({ fields, onClose }: {
  readonly fields: ReadonlyArray<FormField>
  readonly onClose: () => void
}) => {
  const { common, settings, tokens: t } = useTexts()
  const form = useEntry(fields, noEntry, { start: { role: "viewer" } })
  const [secret, setSecret] = useState<string>()
  const add = async () => {
    const { name, role, ...others } = form.changes()
    if (typeof name !== "string") return t.needsName
    if (form.isFaulty) return settings.refused
    const payload = { name, role: role === "admin" ? role : "viewer", ...others } as const
    const reply = await act((client) => client["admin-tokens"].add({ payload }), {
      done: () => t.added(name),
      subjects: changedBy
    })
    if (reply === undefined) onClose()
    else setSecret(reply.secret)
    return undefined
  }
  const shown = { form, names: t.fields }
  return secret === undefined
    ? (
      <FormDialog name={t.newToken} action={t.create} onClose={onClose} onSave={add} onSaved={stay}>
        <EntryField {...shown} path="name" />
        <EntryField {...shown} whole path="role" />
        <p class="hint">{t.roleHint}</p>
        <EntryFields {...shown} paths={otherPaths(fields, placed)} />
      </FormDialog>
    )
    : (
      <Dialog name={t.newToken} onClose={onClose}>
        <p class="notice warn">{t.copyNow}</p>
        <p class="copied">
          <code>{secret}</code>
          <CopyButton name={t.token} text={secret} />
        </p>
        <div class="actions">
          <button type="button" class="primary" onClick={onClose}>{common.close}</button>
        </div>
      </Dialog>
    )
}

const NewToken = ({ onClose }: { readonly onClose: () => void }) => (
  <WithFields of="tokens" name={useTexts().tokens.newToken} onClose={onClose}>
    {(fields) => <TokenMaker fields={fields} onClose={onClose} />}
  </WithFields>
)

export const AdminTokens = () => {
  const { common, tokens: t } = useTexts()
  const [isAdding, setAdding] = useState(false)
  const [deleting, setDeleting] = useState<Token>()
  const lock = useLock()
  // So that a dialog opens immediately.
  useFields("tokens")
  return (
    <Section
      name={t.title}
      actions={<ChangeButton onClick={() => setAdding(true)}>{t.newToken}</ChangeButton>}
    >
      <p class="hint">{t.hint}</p>
      <Loaded atom={tokensAtom}>
        {({ tokens }) => (
          <Table
            name={t.title}
            columns={[...["name", "role", "expires_at"].map((path) => nameOf(t.fields, path)), {
              name: common.actions,
              hidden: true
            }]}
            rows={tokens.length}
            empty={t.empty}
          >
            {tokens.map((token) => (
              <tr key={token.id}>
                <th scope="row" class="text">{token.name}</th>
                <td>{choiceName(t.fields, "role", token.role)}</td>
                <td>
                  {token.expired && <Badge sign="▲" tone="bad" text={t.expired} />}{" "}
                  {token.expires_at === null ? "–" : exactTime(Date.parse(token.expires_at))}
                </td>
                <td class="tools">
                  <RowButton
                    danger
                    text={common.delete}
                    of={token.name}
                    disabled={lock}
                    onClick={() => setDeleting(token)}
                  />
                </td>
              </tr>
            ))}
          </Table>
        )}
      </Loaded>
      {isAdding && <NewToken onClose={() => setAdding(false)} />}
      {deleting !== undefined && (
        <ConfirmDialog
          name={common.actionOn(common.delete, deleting.name)}
          action={common.delete}
          onClose={() => setDeleting(undefined)}
          onConfirm={() =>
            act((client) => client["admin-tokens"].remove({ params: { id: deleting.id } }), {
              done: () => common.deleted(deleting.name),
              subjects: changedBy
            })}
        >
          <p>{t.deleteAsk}</p>
        </ConfirmDialog>
      )}
    </Section>
  )
}
