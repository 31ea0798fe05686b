/**
 * Business keys: what callers bring to be served from the pool.
 */
import { useRef, useState } from "preact/hooks"
import { copyText } from "../parts/copy.ts"
import { DeleteDialog } from "../parts/Dialog.tsx"
import { Heading } from "../parts/Heading.tsx"
import { Loaded } from "../parts/Loaded.tsx"
import { Table } from "../parts/Table.tsx"
import { act } from "../state/actions.ts"
import { useTexts } from "../state/preferences.ts"
import { configAtom, Durability } from "./Durability.tsx"

/** The beginning of a key: eight characters at most, and never more than a third of it. */
export const previewOf = (key: string): string => `${key.slice(0, Math.min(8, Math.floor(key.length / 3)))}...`

/** A key of 32 random bytes, as the gateway itself makes them. */
const randomKey = (): string => {
  const bytes = crypto.getRandomValues(new Uint8Array(32))
  return `sk-gw-${btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`
}

const changedBy = ["keys", "config", "host", "usage"] as const

const AddKey = () => {
  const t = useTexts()
  const field = useRef<HTMLInputElement>(null)
  const [empty, setEmpty] = useState(true)
  const add = async (event: Event) => {
    event.preventDefault()
    const key = field.current?.value.trim() ?? ""
    const reply = await act((client) => client["admin-keys"].add({ payload: { key } }), {
      done: () => t.keys.added(previewOf(key)),
      subjects: changedBy
    })
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
          <button type="submit" class="primary" disabled={empty}>{t.keys.add}</button>
        </div>
      </div>
      <p class="hint">{t.keys.hint}</p>
    </form>
  )
}

const KeyRow = ({ onDelete, value }: { readonly value: string; readonly onDelete: () => void }) => {
  const t = useTexts()
  const [shown, setShown] = useState(false)
  const preview = previewOf(value)
  return (
    <tr>
      <th scope="row" class="text">
        <code>{shown ? value : preview}</code>
      </th>
      <td class="tools">
        <button
          type="button"
          class="quiet"
          aria-label={shown ? t.keys.hideOf(preview) : t.keys.showOf(preview)}
          onClick={() => setShown(!shown)}
        >
          {shown ? t.keys.hide : t.keys.show}
        </button>
        <button
          type="button"
          class="quiet"
          aria-label={t.keys.copyOf(preview)}
          onClick={() => void copyText(value, t.keys.copied(preview))}
        >
          {t.keys.copy}
        </button>
        <button type="button" class="quiet danger" aria-label={t.keys.deleteOf(preview)} onClick={onDelete}>
          {t.keys.delete}
        </button>
      </td>
    </tr>
  )
}

export const Keys = () => {
  const t = useTexts()
  const [deleting, setDeleting] = useState<string>()
  return (
    <>
      <Heading name={t.common.pages.keys} />
      <Durability />
      <AddKey />
      <Loaded atom={configAtom}>
        {({ keys }, waiting) => (
          <Table
            name={t.common.pages.keys}
            busy={waiting}
            columns={[{ name: t.keys.key }, { name: t.keys.actions, hidden: true }]}
            rows={keys.length}
            empty={t.keys.empty}
          >
            {keys.slice(0, 200).map((key) => <KeyRow key={key} value={key} onDelete={() => setDeleting(key)} />)}
          </Table>
        )}
      </Loaded>
      {deleting === undefined ? null : (
        <DeleteDialog
          name={previewOf(deleting)}
          onClose={() => setDeleting(undefined)}
          onDelete={() =>
            act((client) => client["admin-keys"].remove({ params: { key: deleting } }), {
              done: () => t.keys.deleted(previewOf(deleting)),
              subjects: changedBy
            })}
        >
          {t.keys.deleteAsk}
        </DeleteDialog>
      )}
    </>
  )
}
