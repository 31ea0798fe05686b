/**
 * Webhooks: where events are sent, how that goes, and a test of each.
 */
import * as Effect from "effect/Effect"
import { useState } from "preact/hooks"
import { EntryField, EntryFields, otherPaths, useEntry, WithFields } from "../forms/Entry.tsx"
import type { Entry, FormField } from "../forms/fields.ts"
import { Badge } from "../parts/Badge.tsx"
import { ConfirmDialog, FormDialog } from "../parts/Dialog.tsx"
import { useWork } from "../parts/Form.tsx"
import { number } from "../parts/format.ts"
import { Heading } from "../parts/Heading.tsx"
import { Loaded } from "../parts/Loaded.tsx"
import { RowButton, Table } from "../parts/Table.tsx"
import { When } from "../parts/Time.tsx"
import { call, report } from "../state/actions.ts"
import type { Reply } from "../state/client.ts"
import { causeText } from "../state/failure.ts"
import { saveEntry } from "../state/mapEntry.ts"
import { useTexts } from "../state/preferences.ts"
import { readOf, reload } from "../state/reads.ts"

type Page = Reply<"admin-webhooks", "get">
type Webhook = Page["webhooks"][number]
type State = Page["states"][number]

const changedBy = ["webhooks", "config", "host"] as const

const webhooksAtom = readOf("admin-webhooks", "get", { reactivityKeys: ["webhooks", "config"] })

/** Sets a webhook; `undefined` deletes it. Resolves to why nothing was saved. */
const saveWebhook = (
  name: string,
  before: Webhook | undefined,
  webhook: Webhook | undefined,
  changedMeanwhile: string
): Promise<string | undefined> =>
  saveEntry<Webhook, Webhook>(
    {
      read: (client) =>
        Effect.map(client["admin-webhooks"].get(), ({ revision, webhooks }) => ({
          entries: Object.fromEntries(webhooks.map((each) => [each.name, each])),
          revision
        })),
      write: (client, entries, headers) =>
        client["admin-webhooks"].set({ headers, payload: { webhooks: Object.values(entries) } }),
      subjects: changedBy
    },
    name,
    before,
    webhook,
    changedMeanwhile
  )

const noEntry: Entry = {}

const Editor = ({ fields, onClose, webhook: before }: {
  readonly fields: ReadonlyArray<FormField>
  /** The webhook that is changed; absent to add one. */
  readonly webhook: Webhook | undefined
  readonly onClose: () => void
}) => {
  const { common, settings, webhooks: t } = useTexts()
  const form = useEntry(fields, before === undefined ? noEntry : before as unknown as Entry)
  const shown = { form, names: t.fields }
  const save = async () => {
    if (form.isFaulty) return settings.refused
    const given = Object.fromEntries(Object.entries(form.values()).filter(([, value]) => value !== null))
    const { name = "", secret = "", url = "", ...others } = given as Partial<Webhook>
    if (name === "" || url === "" || secret === "") return t.incomplete
    const webhook = { name, url, secret, ...others }
    const refused = await saveWebhook(name, before, webhook, before === undefined ? t.exists(name) : t.changedMeanwhile)
    if (refused === undefined) report(before === undefined ? t.added(name) : t.changed(name))
    return refused
  }
  return (
    <FormDialog
      name={before === undefined ? t.add : common.actionOn(t.edit, before.name)}
      onClose={onClose}
      onSave={save}
    >
      {before === undefined && <EntryField {...shown} path="name" placeholder="ops" />}
      <EntryField {...shown} path="url" placeholder="https://hooks.example/gateway" />
      <EntryField {...shown} path="secret" />
      <p class="hint">{t.secretHint}</p>
      <EntryField {...shown} path="events" rows={3} placeholder={t.allEvents} />
      <EntryFields {...shown} paths={otherPaths(fields, ["name", "url", "secret", "events"])} />
    </FormDialog>
  )
}

/** Sends a test, and reports how the receiver answers. */
const TestButton = ({ name }: { readonly name: string }) => {
  const { webhooks: t } = useTexts()
  const [busy, test] = useWork(async () => {
    const exit = await call((client) => client["admin-webhooks"].test({ payload: { name } }))
    await reload("webhooks")
    if (exit._tag === "Failure") return report(causeText(exit.cause), true)
    const { error, ms, status } = exit.value
    return error === null ? report(t.delivered(name, status ?? 0, ms)) : report(t.notDelivered(name, error), true)
  })
  return <RowButton text={t.test} of={name} disabled={busy} onClick={() => test()} />
}

const LastDelivery = ({ last }: { readonly last: State["last"] }) => {
  const { webhooks: t } = useTexts()
  if (last === null) return <>{t.never}</>
  return (
    <>
      <Badge
        sign={last.error === null ? "●" : "▲"}
        tone={last.error === null ? "good" : "bad"}
        text={last.status === null ? t.noAnswer : `HTTP ${last.status}`}
      />{" "}
      <code>{last.type}</code> <When at={Date.parse(last.at)} />
      {last.error !== null && <p class="hint">{last.error}</p>}
    </>
  )
}

const Rows = ({ onDelete, onEdit, page: { states, webhooks } }: {
  readonly page: Page
  readonly onEdit: (webhook: Webhook) => void
  readonly onDelete: (webhook: Webhook) => void
}) => {
  const { common, webhooks: t } = useTexts()
  return (
    <Table
      name={common.pages.webhooks}
      columns={[
        t.fields("name") ?? "",
        t.fields("events") ?? "",
        t.state,
        t.last,
        { name: t.waiting, number: true },
        { name: t.dropped, number: true },
        { name: common.actions, hidden: true }
      ]}
      rows={webhooks.length}
      empty={t.empty}
    >
      {webhooks.map((webhook) => {
        const state = states.find(({ name }) => name === webhook.name)
        return (
          <tr key={webhook.name}>
            <th scope="row" class="text">
              {webhook.name}
              <p class="hint">
                <code>{webhook.url}</code>
              </p>
            </th>
            <td class="text">{webhook.events?.join(", ") ?? t.allEvents}</td>
            <td>
              {state?.state === "gone"
                ? <Badge sign="▲" tone="bad" text={t.gone} />
                : <Badge sign="●" tone="good" text={t.active} />}
            </td>
            <td class="text">
              <LastDelivery last={state?.last ?? null} />
            </td>
            <td class="number">{number(state?.waiting ?? 0)}</td>
            <td class="number">{number(state?.dropped ?? 0)}</td>
            <td class="tools">
              <TestButton name={webhook.name} />
              <RowButton text={t.edit} of={webhook.name} onClick={() => onEdit(webhook)} />
              <RowButton danger text={common.delete} of={webhook.name} onClick={() => onDelete(webhook)} />
            </td>
          </tr>
        )
      })}
    </Table>
  )
}

export const Webhooks = () => {
  const { common, webhooks: t } = useTexts()
  const [editing, setEditing] = useState<{ readonly webhook: Webhook | undefined }>()
  const [deleting, setDeleting] = useState<Webhook>()
  return (
    <>
      <Heading name={common.pages.webhooks}>
        <button type="button" class="primary" onClick={() => setEditing({ webhook: undefined })}>{t.add}</button>
      </Heading>
      <p class="lead">{t.lead}</p>
      <Loaded atom={webhooksAtom}>
        {(page) => (
          <Rows
            page={page}
            onEdit={(webhook) => setEditing({ webhook })}
            onDelete={(webhook) => setDeleting(webhook)}
          />
        )}
      </Loaded>
      {editing !== undefined && (
        <WithFields
          of="webhooks"
          name={editing.webhook === undefined ? t.add : common.actionOn(t.edit, editing.webhook.name)}
          onClose={() => setEditing(undefined)}
        >
          {(fields) => <Editor fields={fields} webhook={editing.webhook} onClose={() => setEditing(undefined)} />}
        </WithFields>
      )}
      {deleting !== undefined && (
        <ConfirmDialog
          name={common.actionOn(common.delete, deleting.name)}
          action={common.delete}
          onClose={() => setDeleting(undefined)}
          onConfirm={async () => {
            const refused = await saveWebhook(deleting.name, deleting, undefined, t.changedMeanwhile)
            report(refused ?? common.deleted(deleting.name), refused !== undefined)
          }}
        >
          <p>{t.deleteAsk}</p>
        </ConfirmDialog>
      )}
    </>
  )
}
