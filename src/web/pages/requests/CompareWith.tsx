/**
 * Asks which request another one is compared with: one of the newest of its model, or any by its id.
 */
import { useMemo } from "preact/hooks"
import { RequestBadge } from "../../parts/Badge.tsx"
import { Dialog } from "../../parts/Dialog.tsx"
import { Form, TextField } from "../../parts/Form.tsx"
import { Loaded } from "../../parts/Loaded.tsx"
import { numbers, Table } from "../../parts/Table.tsx"
import { When } from "../../parts/Time.tsx"
import { Took } from "../../parts/Values.tsx"
import type { RequestItem } from "../../state/client.ts"
import { readOf } from "../../state/reads.ts"
import type { RequestRecord } from "../../state/requests.ts"
import { go, linkTo } from "../../state/route.ts"
import { useTexts } from "../../state/texts.ts"
import { exactly } from "./filter.ts"

/** How many of the newest requests it offers. */
const offered = 8

/** Requests, each a link to its comparison with the one `of`. */
const Offered = ({ items, name, of }: {
  readonly of: string
  readonly name: string
  readonly items: ReadonlyArray<RequestItem>
}) => {
  const t = useTexts().requests
  return items.length === 0 ? null : (
    <Table
      name={name}
      columns={[t.time, t.outcome, t.key, ...numbers(t.duration)]}
      rows={items.length}
      empty=""
      compact
    >
      {items.map((item) => (
        <tr key={item.id}>
          <th scope="row">
            <a href={linkTo("requests", of, { with: item.id })} title={item.request_id}>
              <When at={item.started_at} />
            </a>
          </th>
          <td>
            <RequestBadge item={item} />
          </td>
          <td class="text">{item.key_name ?? t.keyNames(item.key)}</td>
          <td class="number">
            <Took ms={item.duration_ms} />
          </td>
        </tr>
      ))}
    </Table>
  )
}

export const CompareWith = ({ onClose, record: { id, model } }: {
  readonly record: Pick<RequestRecord, "id" | "model">
  readonly onClose: () => void
}) => {
  const { common, compare: t } = useTexts()
  const list = useMemo(
    () =>
      readOf("admin-requests", "list", {
        query: { ...model === null ? {} : { model: exactly("model", model) }, limit: offered + 1 }
      }),
    [model]
  )
  return (
    <Dialog wide name={t.choose} onClose={onClose}>
      <Form
        onSubmit={async (read) => {
          const other = read("id").trim()
          if (other !== "") go("requests", id, { with: other })
        }}
      >
        {() => (
          <div class="row">
            <TextField grow label={t.byId} name="id" autocomplete="off" spellcheck={false} />
            <button type="submit">{t.compare}</button>
          </div>
        )}
      </Form>
      <Loaded atom={list}>
        {(page) => (
          <Offered
            of={id}
            name={t.newest(model)}
            items={page.items.filter((item) => item.id !== id).slice(0, offered)}
          />
        )}
      </Loaded>
      <div class="actions">
        <button type="button" onClick={onClose}>{common.cancel}</button>
      </div>
    </Dialog>
  )
}
