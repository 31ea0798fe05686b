/**
 * Tokens of machines and viewers for the admin API.
 */
import { useState } from "preact/hooks"
import { Badge } from "../../parts/Badge.tsx"
import { CopyButton } from "../../parts/Copy.tsx"
import { ConfirmDialog, Dialog } from "../../parts/Dialog.tsx"
import { Failure, Field, Form, type ReadField, Select, TextField } from "../../parts/Form.tsx"
import { exactTime } from "../../parts/format.ts"
import { Section } from "../../parts/Heading.tsx"
import { Loaded } from "../../parts/Loaded.tsx"
import { RowButton, Table } from "../../parts/Table.tsx"
import { act } from "../../state/actions.ts"
import { Admin, type Reply } from "../../state/client.ts"
import { useTexts } from "../../state/preferences.ts"

type Token = Reply<"admin-tokens", "list">["tokens"][number]
type Role = Token["role"]

const changedBy = ["settings", "config", "host"] as const

const tokensAtom = Admin.query("admin-tokens", "list", { reactivityKeys: ["settings", "config"] })

/** Makes a token, and shows its secret once. */
const NewToken = ({ onClose }: { readonly onClose: () => void }) => {
  const { common, tokens: t } = useTexts()
  const [role, setRole] = useState<Role>("viewer")
  const [secret, setSecret] = useState<string>()
  const [failure, setFailure] = useState<string>()
  const add = async (read: ReadField) => {
    const name = read("name").trim()
    if (name === "") return setFailure(t.needsName)
    const end = read("expires_at")
    const payload = { name, role, ...(end === "" ? {} : { expires_at: new Date(end).toISOString() }) }
    const reply = await act((client) => client["admin-tokens"].add({ payload }), {
      done: () => t.added(name),
      subjects: changedBy
    })
    return reply === undefined ? onClose() : setSecret(reply.secret)
  }
  return (
    <Dialog name={t.newToken} onClose={onClose}>
      {secret !== undefined
        ? (
          <>
            <p class="notice warn">{t.copyNow}</p>
            <p class="copied">
              <code>{secret}</code>
              <CopyButton name={t.token} text={secret} />
            </p>
            <div class="actions">
              <button type="button" class="primary" onClick={onClose}>{common.close}</button>
            </div>
          </>
        )
        : (
          <Form onSubmit={add}>
            {(busy) => (
              <>
                <TextField label={t.name} name="name" maxLength={100} />
                <Select
                  label={t.role}
                  value={role}
                  options={[["viewer", t.roles.viewer], ["admin", t.roles.admin]]}
                  onValue={setRole}
                />
                <p class="hint">{t.roleHint}</p>
                <Field label={t.expires}>
                  <input name="expires_at" type="datetime-local" />
                </Field>
                <Failure text={failure} />
                <div class="actions end">
                  <button type="button" onClick={onClose}>{common.cancel}</button>
                  <button type="submit" class="primary" disabled={busy}>{t.create}</button>
                </div>
              </>
            )}
          </Form>
        )}
    </Dialog>
  )
}

export const AdminTokens = () => {
  const { common, tokens: t } = useTexts()
  const [isAdding, setAdding] = useState(false)
  const [deleting, setDeleting] = useState<Token>()
  return (
    <Section
      name={t.title}
      actions={<button type="button" onClick={() => setAdding(true)}>{t.newToken}</button>}
    >
      <p class="hint">{t.hint}</p>
      <Loaded atom={tokensAtom}>
        {({ tokens }) => (
          <Table
            name={t.title}
            columns={[t.name, t.role, t.expires, { name: common.actions, hidden: true }]}
            rows={tokens.length}
            empty={t.empty}
          >
            {tokens.map((token) => (
              <tr key={token.id}>
                <th scope="row" class="text">{token.name}</th>
                <td>{t.roles[token.role]}</td>
                <td>
                  {token.expired && <Badge sign="▲" tone="bad" text={t.expired} />}{" "}
                  {token.expires_at === null ? "–" : exactTime(Date.parse(token.expires_at))}
                </td>
                <td class="tools">
                  <RowButton danger text={common.delete} of={token.name} onClick={() => setDeleting(token)} />
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
