/**
 * Settings: a form made from what the gateway says of its configuration. Changes are shown before they are saved.
 */
import { useRef, useState } from "preact/hooks"
import { Dialog } from "../../parts/Dialog.tsx"
import { Heading } from "../../parts/Heading.tsx"
import { Loaded } from "../../parts/Loaded.tsx"
import { Table } from "../../parts/Table.tsx"
import { reload, tell } from "../../state/actions.ts"
import { Admin } from "../../state/client.ts"
import { failureText } from "../../state/failure.ts"
import { useTexts } from "../../state/preferences.ts"
import { rest } from "../../state/rest.ts"
import { Durability } from "../Durability.tsx"
import type { Drafts, Field, SettingsFields } from "./fields.ts"
import { changesOf, faultyLines, fieldAt, groupsOf, patchOf, textOf } from "./fields.ts"
import { FieldView } from "./FieldView.tsx"
import { Password } from "./Password.tsx"

const fieldsAtom = Admin.query("admin-settings", "fields", { reactivityKeys: ["settings"] })

interface Refusal {
  readonly detail?: string
  readonly faults?: ReadonlyArray<{ readonly field: string; readonly message: string }>
}

const Review = ({ busy, changes, drafts, onClose, onSave }: {
  readonly changes: ReadonlyArray<Field>
  readonly drafts: Drafts
  readonly busy: boolean
  readonly onSave: () => void
  readonly onClose: () => void
}) => {
  const texts = useTexts()
  const t = texts.settings
  const shown = (text: string) => text === "" ? <span class="hint">{t.notSet}</span> : <pre>{text}</pre>
  return (
    <Dialog name={t.review} onClose={onClose} wide>
      <Table
        name={t.changes}
        columns={[{ name: t.field }, { name: t.now }, { name: t.new }]}
        rows={changes.length}
        empty={t.noChanges}
      >
        {changes.map((field) => (
          <tr key={field.path}>
            <th scope="row" class="text">
              <code>{field.path}</code>
            </th>
            <td>{shown(textOf(field.configured))}</td>
            <td>{shown((drafts.get(field.path) ?? "").trim())}</td>
          </tr>
        ))}
      </Table>
      <div class="actions">
        <button type="button" onClick={onClose}>{texts.common.cancel}</button>
        <button type="button" class="primary" disabled={busy || changes.length === 0} onClick={onSave}>
          {texts.common.save}
        </button>
      </div>
    </Dialog>
  )
}

const FromFile = ({ fields }: { readonly fields: ReadonlyArray<Field> }) => {
  const t = useTexts().settings
  return (
    <section>
      <h2>{t.fromFile}</h2>
      <p class="hint">{t.fromFileHint}</p>
      <Table
        name={t.fromFile}
        columns={[{ name: t.field }, { name: t.configured }, { name: t.inEffect }]}
        rows={fields.length}
        empty=""
      >
        {fields.map((field) => (
          <tr key={field.path}>
            <th scope="row" class="text">
              <code>{field.path}</code>
            </th>
            <td>
              {field.configured === null ? <span class="hint">{t.notSet}</span> : <pre>{textOf(field.configured)}</pre>}
            </td>
            <td>
              <pre>{textOf(field.effective)}</pre>
            </td>
          </tr>
        ))}
      </Table>
    </section>
  )
}

const Form = ({ fields, revision }: SettingsFields) => {
  const texts = useTexts()
  const t = texts.settings
  const [drafts, setDrafts] = useState<Drafts>(new Map())
  const [faults, setFaults] = useState<ReadonlyMap<string, string>>(new Map())
  const [failure, setFailure] = useState<string>()
  const [reviewing, setReviewing] = useState(false)
  const [busy, setBusy] = useState(false)
  // The configuration that the person at the page saw when they began to change it.
  const seen = useRef<string | undefined>(undefined)
  const writable = fields.filter((field) => field.writable)
  const changes = changesOf(writable, drafts)

  const draft = (field: Field, text: string) => {
    seen.current ??= revision
    setDrafts((now) => new Map([...now, [field.path, text]]))
    setFaults((now) => new Map([...now].filter(([path]) => path !== field.path)))
  }
  const discard = () => {
    seen.current = undefined
    setDrafts(new Map())
    setFaults(new Map())
    setFailure(undefined)
  }
  const review = (event: Event) => {
    event.preventDefault()
    const wrong = changes.flatMap((field): ReadonlyArray<readonly [string, string]> => {
      const lines = field.type === "map" ? faultyLines(drafts.get(field.path) ?? "") : []
      return lines.length === 0 ? [] : [[field.path, t.faultyLines(lines.join(", "))]]
    })
    if (wrong.length > 0) refuse(new Map(wrong), t.refused)
    else setReviewing(true)
  }
  const refuse = (found: ReadonlyMap<string, string>, text: string) => {
    setFaults(found)
    setFailure(text)
    const [first] = found.keys()
    if (first !== undefined) setTimeout(() => document.getElementById(`setting-${first}`)?.focus())
  }
  const save = async () => {
    setBusy(true)
    try {
      const response = await rest("PUT", "/admin/settings", {
        body: patchOf(changes, drafts),
        headers: { "if-match": `"${seen.current ?? revision}"` }
      })
      const reply = await response.json().catch(() => ({})) as Refusal
      setReviewing(false)
      if (response.ok) {
        tell(t.saved)
        discard()
        reload("settings", "config", "host")
      } else if (response.status === 409) {
        seen.current = undefined
        setFailure(t.changedMeanwhile)
        reload("settings")
      } else {
        const found = new Map<string, string>()
        for (const { field, message } of reply.faults ?? []) {
          const path = fieldAt(writable, field)?.path
          if (path !== undefined) found.set(path, message)
        }
        refuse(found, reply.detail ?? texts.failures.status(response.status))
      }
    } catch (reason) {
      setReviewing(false)
      setFailure(failureText(reason))
    } finally {
      setBusy(false)
    }
  }

  return (
    <>
      <form class="stack" aria-label={t.form} onSubmit={review} noValidate>
        {groupsOf(writable).map(([group, members]) => (
          <fieldset key={group} class="card settings">
            <legend>{t.groups(group)}</legend>
            <div class="settings-grid">
              {members.map((field) => (
                <FieldView
                  key={field.path}
                  field={field}
                  text={drafts.get(field.path) ?? textOf(field.configured)}
                  changed={changes.includes(field)}
                  fault={faults.get(field.path)}
                  onText={(text) => draft(field, text)}
                />
              ))}
            </div>
          </fieldset>
        ))}
        {failure === undefined ? null : <p class="notice bad" role="alert">{failure}</p>}
        <div class="actions sticky">
          <button type="submit" class="primary" disabled={changes.length === 0}>{t.review}</button>
          <button type="button" disabled={drafts.size === 0} onClick={discard}>{t.discard}</button>
          {changes.length === 0 ? null : <span class="hint">{t.changeCount(changes.length)}</span>}
        </div>
      </form>
      {reviewing
        ? (
          <Review
            changes={changes}
            drafts={drafts}
            busy={busy}
            onSave={() => void save()}
            onClose={() => setReviewing(false)}
          />
        )
        : null}
    </>
  )
}

export const Settings = () => {
  const t = useTexts()
  return (
    <>
      <Heading name={t.common.pages.settings} />
      <Durability />
      <p class="lead">{t.settings.lead}</p>
      <Loaded atom={fieldsAtom}>
        {(settings) => (
          <>
            <Form {...settings} />
            <Password />
            <FromFile fields={settings.fields.filter((field) => !field.writable)} />
          </>
        )}
      </Loaded>
    </>
  )
}
