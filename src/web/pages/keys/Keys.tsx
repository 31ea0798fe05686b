/**
 * Business keys, which callers present to be served from the pool, and what each key allows.
 */
import { useMemo, useRef, useState } from "preact/hooks"
import { Badge } from "../../parts/Badge.tsx"
import { DeleteDialog } from "../../parts/Dialog.tsx"
import { Form, TextField } from "../../parts/Form.tsx"
import { dateTime, number } from "../../parts/format.ts"
import { Heading } from "../../parts/Heading.tsx"
import { Loaded } from "../../parts/Loaded.tsx"
import { Pager, RowButton, Table } from "../../parts/Table.tsx"
import { act, copyText } from "../../state/actions.ts"
import { Admin } from "../../state/client.ts"
import { useTexts } from "../../state/preferences.ts"
import { DurabilityNotice, useAcceptedKeys } from "../configuration.tsx"
import { changedBy, EditKey } from "./EditKey.tsx"
import { type KeyItem, keyOfId, randomKey } from "./keys.ts"
import { limitsOf } from "./limits.ts"

const pageSize = 50
const noKeys: ReadonlyArray<string> = []

const AddKey = () => {
  const t = useTexts().keys
  const field = useRef<HTMLInputElement>(null)
  const [empty, setEmpty] = useState(true)
  const write = (text: string) => {
    if (field.current !== null) field.current.value = text
    setEmpty(text === "")
  }
  const add = async () => {
    const key = field.current?.value.trim() ?? ""
    const reply = await act((client) => client["admin-keys"].add({ payload: { key } }), {
      done: ({ preview }) => t.added(preview),
      subjects: changedBy
    })
    if (reply !== undefined) write("")
  }
  return (
    <Form class="card" onSubmit={add}>
      {(busy) => (
        <>
          <div class="row">
            <TextField
              grow
              ref={field}
              label={t.newKey}
              class="code"
              spellcheck={false}
              onInput={(event) => setEmpty(event.currentTarget.value.trim() === "")}
            />
            <div class="actions">
              <button type="button" onClick={() => write(randomKey())}>{t.generate}</button>
              <button type="submit" class="primary" disabled={busy || empty}>{t.add}</button>
            </div>
          </div>
          <p class="hint">{t.hint}</p>
        </>
      )}
    </Form>
  )
}

const signs = {
  active: { sign: "●", tone: "good" },
  disabled: { sign: "○", tone: "muted" },
  expired: { sign: "▲", tone: "bad" }
} as const

/** How much of each limit is used, one line per limit. */
const Used = ({ item }: { readonly item: KeyItem }) => {
  const t = useTexts().keys
  const lines = limitsOf(item).map(t.used)
  return (
    <>
      <p>
        {item.usage.max_inflight === null
          ? t.running(number(item.usage.in_flight))
          : t.runningOf(number(item.usage.in_flight), number(item.usage.max_inflight))}
      </p>
      {lines.map((line) => <p key={line} class="hint">{line}</p>)}
    </>
  )
}

const KeyRow = ({ item, onDelete, onEdit, value }: {
  readonly item: KeyItem
  /** The key itself, if the page knows it. */
  readonly value: string | undefined
  readonly onEdit: () => void
  readonly onDelete: () => void
}) => {
  const t = useTexts().keys
  const [shown, setShown] = useState(false)
  const { preview } = item
  const isUnknown = value === undefined
  return (
    <tr>
      <th scope="row" class="text">
        <code>{shown ? value ?? preview : preview}</code>
        {item.name !== null && <p>{item.name}</p>}
        {item.note !== null && <p class="hint">{item.note}</p>}
      </th>
      <td>
        <Badge {...signs[item.state]} text={t.states[item.state]} />
        {item.generated === true && <p class="hint">{t.generated}</p>}
        {item.expires_at !== null && <p class="hint">{t.until(dateTime(Date.parse(item.expires_at)))}</p>}
        {item.models !== null && <p class="hint clip" title={item.models.join(", ")}>{item.models.join(", ")}</p>}
      </td>
      <td class="nowrap">
        <Used item={item} />
      </td>
      <td class="nowrap">
        {item.usage.last_used_at === null ? "–" : dateTime(Date.parse(item.usage.last_used_at))}
      </td>
      <td class="tools">
        <RowButton
          text={shown ? t.hide : t.show}
          of={preview}
          disabled={isUnknown}
          onClick={() => setShown(!shown)}
        />
        <RowButton
          text={t.copy}
          of={preview}
          disabled={isUnknown}
          onClick={() => void copyText(value ?? "", t.copied(preview))}
        />
        <RowButton text={t.edit} of={preview} onClick={onEdit} />
        <RowButton danger text={t.delete} of={preview} onClick={onDelete} />
      </td>
    </tr>
  )
}

export const Keys = () => {
  const { common, keys: t } = useTexts()
  const [page, setPage] = useState(1)
  const [deleting, setDeleting] = useState<KeyItem>()
  const [editing, setEditing] = useState<KeyItem>()
  // The list contains ids in place of keys. The two replies may be from before and after a change, so their order may differ.
  const keys = useAcceptedKeys() ?? noKeys
  const list = useMemo(
    () => Admin.query("admin-keys", "list", { query: { page, page_size: pageSize }, reactivityKeys: ["keys"] }),
    [page]
  )
  return (
    <>
      <Heading name={common.pages.keys} />
      <DurabilityNotice />
      <AddKey />
      <Loaded atom={list}>
        {({ items, page: shown, total, total_pages }, waiting) => (
          <>
            <Table
              name={common.pages.keys}
              busy={waiting}
              columns={[t.key, t.state, t.use, t.lastUsed, { name: t.actions, hidden: true }]}
              rows={items.length}
              empty={t.empty}
            >
              {items.map((item) => (
                <KeyRow
                  key={item.id}
                  item={item}
                  value={keyOfId(keys, item.id)}
                  onEdit={() => setEditing(item)}
                  onDelete={() => setDeleting(item)}
                />
              ))}
            </Table>
            {(total_pages > 1 || shown > 1) && (
              <Pager page={page} shown={shown} pages={total_pages} total={t.total(total)} onPage={setPage} />
            )}
          </>
        )}
      </Loaded>
      {editing !== undefined && <EditKey item={editing} onClose={() => setEditing(undefined)} />}
      {deleting !== undefined && (
        <DeleteDialog
          name={deleting.preview}
          onClose={() => setDeleting(undefined)}
          onDelete={() =>
            act((client) => client["admin-keys"].remove({ params: { key: deleting.id } }), {
              done: () => t.deleted(deleting.preview),
              subjects: changedBy
            })}
        >
          {t.deleteAsk}
        </DeleteDialog>
      )}
    </>
  )
}
