/**
 * Asks which request another one is compared with: one of the newest of its model, or any by its id.
 */
import { useEffect, useState } from "preact/hooks"
import { RequestBadge } from "../../parts/Badge.tsx"
import { Dialog } from "../../parts/Dialog.tsx"
import { Failure, Form, TextField } from "../../parts/Form.tsx"
import { numbers, Table } from "../../parts/Table.tsx"
import { When } from "../../parts/Time.tsx"
import { Took } from "../../parts/Values.tsx"
import type { RequestItem } from "../../state/client.ts"
import { failureText } from "../../state/failure.ts"
import { listRequests, type RequestRecord } from "../../state/requests.ts"
import { go, linkTo } from "../../state/route.ts"
import { useTexts } from "../../state/texts.ts"
import { exactly } from "./filter.ts"

/** How many of the newest requests it offers. */
const offered = 8

export const CompareWith = ({ onClose, record: { id, model } }: {
  readonly record: Pick<RequestRecord, "id" | "model">
  readonly onClose: () => void
}) => {
  const { common, compare: t, requests } = useTexts()
  const [items, setItems] = useState<ReadonlyArray<RequestItem>>([])
  const [failure, setFailure] = useState<string>()
  useEffect(() => {
    const ending = new AbortController()
    const filter = model === null ? {} : { model: exactly("model", model) }
    listRequests(filter, undefined, offered + 1, undefined, ending.signal).then(
      (page) => setItems(page.items.filter((item) => item.id !== id).slice(0, offered)),
      (reason: unknown) => {
        if (!ending.signal.aborted) setFailure(failureText(reason))
      }
    )
    return () => ending.abort()
  }, [id, model])
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
      <Failure text={failure} />
      {items.length > 0 && (
        <Table
          name={t.newest(model)}
          columns={[requests.time, requests.outcome, requests.key, ...numbers(requests.duration)]}
          rows={items.length}
          empty=""
          compact
        >
          {items.map((item) => (
            <tr key={item.id}>
              <th scope="row">
                <a href={linkTo("requests", id, { with: item.id })} title={item.request_id}>
                  <When at={item.started_at} />
                </a>
              </th>
              <td>
                <RequestBadge item={item} />
              </td>
              <td class="text">{item.key_name ?? requests.keyNames(item.key)}</td>
              <td class="number">
                <Took ms={item.duration_ms} />
              </td>
            </tr>
          ))}
        </Table>
      )}
      <div class="actions">
        <button type="button" onClick={onClose}>{common.cancel}</button>
      </div>
    </Dialog>
  )
}
