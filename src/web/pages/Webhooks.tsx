/**
 * Webhooks: where events are sent, how that goes, and a test of each.
 */
import * as Effect from "effect/Effect"
import { useMemo, useState } from "preact/hooks"
import {
  EntryField,
  EntryFields,
  type EntryForm,
  otherPaths,
  useEntry,
  useFields,
  WithFields
} from "../forms/Entry.tsx"
import { type Entry, type FormField, linesOf } from "../forms/fields.ts"
import { Badge } from "../parts/Badge.tsx"
import { ChangeButton } from "../parts/configuration.tsx"
import { CopyButton } from "../parts/Copy.tsx"
import { ConfirmDialog, Dialog, FormDialog } from "../parts/Dialog.tsx"
import { Empty } from "../parts/Empty.tsx"
import { Check, useWork } from "../parts/Form.tsx"
import { number } from "../parts/format.ts"
import { Heading } from "../parts/Heading.tsx"
import { Loaded } from "../parts/Loaded.tsx"
import { RowMenu } from "../parts/Menu.tsx"
import { Row, RowButton, Table } from "../parts/Table.tsx"
import { When } from "../parts/Time.tsx"
import { Took } from "../parts/Values.tsx"
import { call, report } from "../state/actions.ts"
import type { AdminClient, Reply } from "../state/client.ts"
import { causeText } from "../state/failure.ts"
import { useReread } from "../state/live.ts"
import { saveEntry } from "../state/mapEntry.ts"
import { readOf, reload } from "../state/reads.ts"
import { useValue } from "../state/registry.ts"
import { allTexts, useTexts } from "../state/texts.ts"

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

type EventType = Page["events"][number]

/** What an event belongs to: the beginning of its name. */
const groupOf = (type: string): string => type.slice(0, type.indexOf("."))

/** Whether an entry of the chosen events has one of them. */
const matches = (chosen: string, type: string): boolean =>
  chosen.endsWith("*") ? type.startsWith(chosen.slice(0, -1)) : chosen === type

/** The chosen events without or with one of them, or with a whole group in place of its events. */
const toggled = (
  chosen: ReadonlyArray<string>,
  types: ReadonlyArray<string>,
  changed: ReadonlyArray<string>,
  isOn: boolean
): ReadonlyArray<string> => {
  const group = groupOf(changed[0]!)
  const whole = `${group}.*`
  const own = types.filter((type) => groupOf(type) === group)
  const left = own.filter((type) => changed.includes(type) ? isOn : chosen.some((each) => [whole, type].includes(each)))
  const others = chosen.filter((each) => each !== whole && !own.includes(each))
  return [...others, ...left.length === own.length ? [whole] : left]
}

/** The events of a webhook as check boxes by what they are about: none that is chosen stands for all. */
const Events = ({ events, form }: { readonly events: ReadonlyArray<EventType>; readonly form: EntryForm }) => {
  const t = useTexts().webhooks
  const chosen = linesOf(form.text("events"))
  const types = events.map(({ type }) => type)
  const isOn = (type: string) => chosen.some((each) => matches(each, type))
  const change =
    (changed: ReadonlyArray<string>) => (event: { readonly currentTarget: { readonly checked: boolean } }) =>
      form.set("events", toggled(chosen, types, changed, event.currentTarget.checked).join("\n"))
  return (
    <fieldset class="stack tight">
      <legend class="label">{t.fields("events")}</legend>
      {[...Map.groupBy(events, ({ type }) => groupOf(type))].map(([group, own]) => (
        <div key={group} class="checks" role="group" aria-label={group}>
          {own.length > 1 && (
            <Check
              label={`${group}.*`}
              title={t.wholeGroup}
              checked={own.every(({ type }) => isOn(type))}
              onChange={change(own.map(({ type }) =>
                type
              ))}
            />
          )}
          {own.map(({ type, when }) => (
            <Check key={type} label={type} title={when} checked={isOn(type)} onChange={change([type])} />
          ))}
        </div>
      ))}
      <p class="hint">{t.withoutEvents}</p>
    </fieldset>
  )
}

/** A secret that signs events. */
const newSecret = (): string => `whsec_${btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32))))}`

/** The secret, which can be made here and is then shown to be copied. */
const Secret = ({ form }: { readonly form: EntryForm }) => {
  const t = useTexts().webhooks
  const [made, setMade] = useState("")
  const isShown = made !== "" && made === form.text("secret")
  return (
    <>
      <div class="row">
        <EntryField grow form={form} names={t.fields} path="secret" />
        <button
          type="button"
          onClick={() => {
            const secret = newSecret()
            setMade(secret)
            form.set("secret", secret)
          }}
        >
          {t.generate}
        </button>
      </div>
      {isShown
        ? (
          <p class="notice warn copied" role="status">
            <code>{made}</code>
            <CopyButton name={t.fields("secret") ?? ""} text={made} />
            <span>{t.copySecret}</span>
          </p>
        )
        : <p class="hint">{t.secretHint}</p>}
    </>
  )
}

const Editor = ({ events, fields, onClose, webhook: before }: {
  readonly fields: ReadonlyArray<FormField>
  /** The events that exist. */
  readonly events: ReadonlyArray<EventType>
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
      <Secret form={form} />
      <Events events={events} form={form} />
      <EntryFields
        {...shown}
        paths={otherPaths(fields, [
          "name",
          "url",
          "secret",
          "events",
          ...before === undefined ? ["secret_previous"] : []
        ])}
      />
    </FormDialog>
  )
}

/** Sends an event, and reports how the receiver answers. */
const sent = async (
  name: string,
  send: (client: AdminClient) => Effect.Effect<Reply<"admin-webhooks", "test">, unknown>
): Promise<void> => {
  const t = allTexts().webhooks
  const exit = await call(send)
  await reload("webhooks")
  if (exit._tag === "Failure") return report(causeText(exit.cause), true)
  const { error, ms, status } = exit.value
  return error === null ? report(t.delivered(name, status ?? 0, ms)) : report(t.notDelivered(name, error), true)
}

/** How a delivery ended. */
const Status = ({ of: { error, status } }: { readonly of: NonNullable<State["last"]> }) => {
  const { webhooks: t } = useTexts()
  return (
    <>
      <Badge
        sign={error === null ? "●" : "▲"}
        tone={error === null ? "good" : "bad"}
        text={status === null ? t.noAnswer : `HTTP ${status}`}
      />
      {error !== null && <p class="hint">{error}</p>}
    </>
  )
}

const LastDelivery = ({ last }: { readonly last: State["last"] }) => {
  const { webhooks: t } = useTexts()
  if (last === null) return <>{t.never}</>
  return (
    <>
      <code>{last.type}</code> <When at={Date.parse(last.at)} /> <Status of={last} />
    </>
  )
}

/** The last deliveries of a webhook, each of which can be sent again. */
const Deliveries = ({ name, onClose }: { readonly name: string; readonly onClose: () => void }) => {
  const { common, webhooks: t } = useTexts()
  const read = useMemo(
    () => readOf("admin-webhooks", "deliveries", { query: { name }, reactivityKeys: ["webhooks"] }),
    [name]
  )
  useReread(read)
  const [busy, send] = useWork((id: string) =>
    sent(name, (client) => client["admin-webhooks"].resend({ payload: { id, name } }))
  )
  return (
    <Dialog wide name={t.deliveriesOf(name)} onClose={onClose}>
      <p class="hint">{t.deliveriesHint}</p>
      <Loaded atom={read}>
        {({ deliveries }) => (
          <Table
            name={t.deliveriesOf(name)}
            columns={[
              { name: t.when, rank: 1, width: "6.6rem" },
              { name: t.event, rank: 1 },
              { name: t.outcome, rank: 2, class: "text" },
              { name: t.took, rank: 3, number: true, width: "5rem" },
              { name: common.actions, hidden: true, width: "7.5rem", class: "tools" }
            ]}
            rows={deliveries.length}
            empty={t.noDeliveries}
          >
            {deliveries.map((delivery, index) => (
              <Row
                key={`${delivery.id} ${delivery.at} ${deliveries.length - index}`}
                cells={[
                  <When key="at" at={Date.parse(delivery.at)} />,
                  <code key="type" title={delivery.id}>{delivery.type}</code>,
                  <Status key="status" of={delivery} />,
                  <Took key="took" ms={delivery.ms} />,
                  <RowButton
                    key="send"
                    text={t.sendAgain}
                    of={delivery.type}
                    disabled={busy}
                    onClick={() => send(delivery.id)}
                  />
                ]}
              />
            ))}
          </Table>
        )}
      </Loaded>
      <div class="actions">
        <button type="button" onClick={onClose}>{common.close}</button>
      </div>
    </Dialog>
  )
}

const Rows = ({ onDelete, onDeliveries, onEdit, page: { states, webhooks } }: {
  readonly page: Page
  readonly onDeliveries: (webhook: Webhook) => void
  readonly onEdit: (webhook: Webhook) => void
  readonly onDelete: (webhook: Webhook) => void
}) => {
  const { common, webhooks: t } = useTexts()
  return (
    <Table
      name={common.pages.webhooks}
      columns={[
        { name: t.fields("name") ?? "", rank: 1, class: "text" },
        { name: t.state, rank: 1, width: "9rem" },
        { name: t.fields("events") ?? "", rank: 3, class: "text" },
        { name: t.last, rank: 2, width: "34%", class: "text" },
        { name: t.waiting, rank: 3, number: true, width: "5.4rem" },
        { name: t.dropped, rank: 3, number: true, width: "5.4rem" },
        { name: common.actions, hidden: true, width: "2.6rem", class: "tools" }
      ]}
      rows={webhooks.length}
      empty={<Empty>{t.empty}</Empty>}
    >
      {webhooks.map((webhook) => {
        const { name } = webhook
        const state = states.find((each) => each.name === name)
        return (
          <Row
            key={name}
            cells={[
              <>
                {name}
                <p class="hint">
                  <code>{webhook.url}</code>
                </p>
              </>,
              state?.state === "gone"
                ? <Badge sign="▲" tone="bad" text={t.gone} />
                : <Badge sign="●" tone="good" text={t.active} />,
              webhook.events?.join(", ") ?? t.allEvents,
              <LastDelivery key="last" last={state?.last ?? null} />,
              number(state?.waiting ?? 0),
              number(state?.dropped ?? 0),
              <RowMenu
                key="menu"
                of={name}
                items={[
                  {
                    id: "test",
                    text: t.test,
                    onClick: () => void sent(name, (client) => client["admin-webhooks"].test({ payload: { name } }))
                  },
                  { id: "deliveries", text: t.deliveries, onClick: () => onDeliveries(webhook) },
                  { id: "edit", text: t.edit, onClick: () => onEdit(webhook) },
                  { id: "delete", text: common.delete, danger: true, apart: true, onClick: () => onDelete(webhook) }
                ]}
              />
            ]}
          />
        )
      })}
    </Table>
  )
}

const noEvents: ReadonlyArray<EventType> = []

export const Webhooks = () => {
  const { common, webhooks: t } = useTexts()
  const [editing, setEditing] = useState<{ readonly webhook: Webhook | undefined }>()
  const [deleting, setDeleting] = useState<Webhook>()
  const [lookedAt, setLookedAt] = useState<Webhook>()
  const events = useValue(webhooksAtom)?.events ?? noEvents
  // So that a dialog opens immediately.
  useFields("webhooks")
  return (
    <>
      <Heading name={common.pages.webhooks}>
        <ChangeButton class="primary" onClick={() => setEditing({ webhook: undefined })}>{t.add}</ChangeButton>
      </Heading>
      <p class="lead">{t.lead}</p>
      <Loaded atom={webhooksAtom}>
        {(page) => (
          <Rows
            page={page}
            onDeliveries={setLookedAt}
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
          {(fields) => (
            <Editor
              events={events}
              fields={fields}
              webhook={editing.webhook}
              onClose={() => setEditing(undefined)}
            />
          )}
        </WithFields>
      )}
      {lookedAt !== undefined && <Deliveries name={lookedAt.name} onClose={() => setLookedAt(undefined)} />}
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
