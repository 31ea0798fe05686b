/**
 * Business keys: what callers bring to be served from the pool, and what each may do.
 */
import * as Option from "effect/Option"
import * as AsyncResult from "effect/reactivity/AsyncResult"
import { useMemo, useRef, useState } from "preact/hooks"
import { copyText } from "../../parts/copy.ts"
import { DeleteDialog } from "../../parts/Dialog.tsx"
import { dateTime, number } from "../../parts/format.ts"
import { Heading } from "../../parts/Heading.tsx"
import { Loaded } from "../../parts/Loaded.tsx"
import { Pager } from "../../parts/Pager.tsx"
import { Badge } from "../../parts/State.tsx"
import { Table } from "../../parts/Table.tsx"
import { act } from "../../state/actions.ts"
import { Admin } from "../../state/client.ts"
import { useTexts } from "../../state/preferences.ts"
import { useAtom } from "../../state/registry.ts"
import { acceptedKeys, configAtom, Durability } from "../Durability.tsx"
import type { KeyItem } from "./draft.ts"
import { changedBy, EditKey } from "./EditKey.tsx"
import { keyOfId, randomKey } from "./preview.ts"

const pageSize = 50
const noKeys: ReadonlyArray<string> = []

const AddKey = () => {
  const t = useTexts()
  const field = useRef<HTMLInputElement>(null)
  const [empty, setEmpty] = useState(true)
  const [busy, setBusy] = useState(false)
  const add = async (event: Event) => {
    event.preventDefault()
    setBusy(true)
    const key = field.current?.value.trim() ?? ""
    const reply = await act((client) => client["admin-keys"].add({ payload: { key } }), {
      done: ({ preview }) => t.keys.added(preview),
      subjects: changedBy
    })
    setBusy(false)
    if (reply === undefined || field.current === null) return
    field.current.value = ""
    setEmpty(true)
  }
  return (
    <form class="card" onSubmit={(event) => void add(event)}>
      <div class="row">
        <label class="field grow">
          <span>{t.keys.newKey}</span>
          <input
            ref={field}
            class="code"
            type="text"
            autocomplete="off"
            spellcheck={false}
            onInput={(event) => setEmpty(event.currentTarget.value.trim() === "")}
          />
        </label>
        <div class="actions">
          <button
            type="button"
            onClick={() => {
              if (field.current !== null) field.current.value = randomKey()
              setEmpty(false)
            }}
          >
            {t.keys.generate}
          </button>
          <button type="submit" class="primary" disabled={busy || empty}>{t.keys.add}</button>
        </div>
      </div>
      <p class="hint">{t.keys.hint}</p>
    </form>
  )
}

const signs = {
  active: { sign: "●", tone: "good" },
  disabled: { sign: "○", tone: "muted" },
  expired: { sign: "▲", tone: "bad" }
} as const

/** What is used up of each limit, in a line each. */
const Used = ({ item }: { readonly item: KeyItem }) => {
  const t = useTexts().keys
  const lines = item.usage.windows.flatMap(({ requests, tokens, window }) => [
    ...(requests === null ? [] : [t.usedRequests(t.windows[window], number(requests.used), number(requests.limit))]),
    ...(tokens === null ? [] : [t.usedTokens(t.windows[window], number(tokens.used), number(tokens.limit))])
  ])
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
  /** The key itself, where the page knows it. */
  readonly value: string | undefined
  readonly onEdit: () => void
  readonly onDelete: () => void
}) => {
  const t = useTexts().keys
  const [shown, setShown] = useState(false)
  const { preview } = item
  const button = (
    text: string,
    name: string,
    onClick: () => void,
    options: { tone?: string; disabled?: boolean } = {}
  ) => (
    <button
      type="button"
      class={`quiet ${options.tone ?? ""}`}
      aria-label={name}
      disabled={options.disabled ?? false}
      onClick={onClick}
    >
      {text}
    </button>
  )
  const unknown = { disabled: value === undefined }
  return (
    <tr>
      <th scope="row" class="text">
        <code>{shown ? value ?? preview : preview}</code>
        {item.name === null ? null : <p>{item.name}</p>}
        {item.note === null ? null : <p class="hint">{item.note}</p>}
      </th>
      <td>
        <Badge {...signs[item.state]} text={t.states[item.state]} />
        {item.generated === true ? <p class="hint">{t.generated}</p> : null}
        {item.expires_at === null ? null : <p class="hint">{t.until(dateTime(Date.parse(item.expires_at)))}</p>}
        {item.models === null ? null : <p class="hint clip" title={item.models.join(", ")}>{item.models.join(", ")}</p>}
      </td>
      <td class="nowrap">
        <Used item={item} />
      </td>
      <td class="nowrap">
        {item.usage.last_used_at === null ? "–" : dateTime(Date.parse(item.usage.last_used_at))}
      </td>
      <td class="tools">
        {button(
          shown ? t.hide : t.show,
          shown ? t.hideOf(preview) : t.showOf(preview),
          () => setShown(!shown),
          unknown
        )}
        {button(t.copy, t.copyOf(preview), () => void copyText(value ?? "", t.copied(preview)), unknown)}
        {button(t.edit, t.editOf(preview), onEdit)}
        {button(t.delete, t.deleteOf(preview), onDelete, { tone: "danger" })}
      </td>
    </tr>
  )
}

export const Keys = () => {
  const t = useTexts()
  const [page, setPage] = useState(1)
  const [deleting, setDeleting] = useState<KeyItem>()
  const [editing, setEditing] = useState<KeyItem>()
  const config = AsyncResult.value(useAtom(configAtom))
  // The list has ids in the place of keys. Their order says nothing: one of the two may have been read before a change.
  const keys = Option.isSome(config) ? acceptedKeys(config.value) : noKeys
  const list = useMemo(
    () => Admin.query("admin-keys", "list", { query: { page, page_size: pageSize }, reactivityKeys: ["keys"] }),
    [page]
  )
  return (
    <>
      <Heading name={t.common.pages.keys} />
      <Durability />
      <AddKey />
      <Loaded atom={list}>
        {({ items, page: shown, total, total_pages }, waiting) => (
          <>
            <Table
              name={t.common.pages.keys}
              busy={waiting}
              columns={[
                { name: t.keys.key },
                { name: t.keys.state },
                { name: t.keys.use },
                { name: t.keys.lastUsed },
                { name: t.keys.actions, hidden: true }
              ]}
              rows={items.length}
              empty={t.keys.empty}
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
            {total_pages === 1 && shown === 1
              ? null
              : <Pager page={page} shown={shown} pages={total_pages} total={t.keys.total(total)} onPage={setPage} />}
          </>
        )}
      </Loaded>
      {editing === undefined ? null : <EditKey item={editing} onClose={() => setEditing(undefined)} />}
      {deleting === undefined ? null : (
        <DeleteDialog
          name={deleting.preview}
          onClose={() => setDeleting(undefined)}
          onDelete={() =>
            act((client) => client["admin-keys"].remove({ params: { key: deleting.id } }), {
              done: () => t.keys.deleted(deleting.preview),
              subjects: changedBy
            })}
        >
          {t.keys.deleteAsk}
        </DeleteDialog>
      )}
    </>
  )
}
