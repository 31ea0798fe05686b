/**
 * Settings: a form made from the gateway's description of its configuration. Changes are reviewed before they are saved.
 */
import { useRef, useState } from "preact/hooks"
import { fieldsAtom } from "../../forms/Entry.tsx"
import { described } from "../../forms/FieldInput.tsx"
import {
  changesOf,
  configuredTexts,
  faultOf,
  faultyLines,
  fieldAt,
  groupsOf,
  isSought,
  patchOf,
  type Setting,
  type SettingsFields,
  textOf,
  type Texts
} from "../../forms/fields.ts"
import { useLock } from "../../parts/configuration.tsx"
import { Dialog } from "../../parts/Dialog.tsx"
import { Failure, Field, Form, type ReadField, Search, useWork } from "../../parts/Form.tsx"
import { Heading, Section } from "../../parts/Heading.tsx"
import { Loaded } from "../../parts/Loaded.tsx"
import { Table } from "../../parts/Table.tsx"
import { act, report } from "../../state/actions.ts"
import { rest, signedOut } from "../../state/client.ts"
import { failureText } from "../../state/failure.ts"
import { settingHelp } from "../../state/help.ts"
import { reload } from "../../state/reads.ts"
import { choose, useQuery, useUnsaved } from "../../state/route.ts"
import { useTexts } from "../../state/texts.ts"
import { AdminTokens } from "./AdminTokens.tsx"
import { FieldView, useSettingName } from "./FieldView.tsx"

interface Refusal {
  readonly detail?: string
  readonly faults?: ReadonlyArray<{ readonly field: string; readonly message: string }>
}

/** A table of settings with two texts each, such as the configured and the effective value. */
const FieldTable = ({ columns, empty = "", fields, isDescribed = false, name, second, first }: {
  readonly name: string
  readonly columns: ReadonlyArray<string>
  /** Another column describes the fields. */
  readonly isDescribed?: boolean
  readonly fields: ReadonlyArray<Setting>
  readonly first: (field: Setting) => string
  readonly second: (field: Setting) => string
  readonly empty?: string
}) => {
  const t = useTexts().settings
  const nameOf = useSettingName()
  const shown = (text: string) => text === "" ? <span class="hint">{t.notSet}</span> : <pre>{text}</pre>
  const [of = "", ...values] = columns
  return (
    <Table
      name={name}
      columns={[
        { name: of, width: isDescribed ? "32%" : "40%" },
        ...values.map((each) => ({ name: each, width: isDescribed ? "16%" : "30%" })),
        ...isDescribed ? [t.about] : []
      ]}
      rows={fields.length}
      empty={empty}
    >
      {fields.map((field) => (
        <tr key={field.path}>
          <th scope="row" class="text">
            {nameOf(field)}
            <p class="hint">
              <a href={settingHelp(field.path)} target="_blank" rel="noreferrer">
                <code>{field.path}</code>
              </a>
            </p>
          </th>
          <td>{shown(first(field))}</td>
          <td>{shown(second(field))}</td>
          {isDescribed && <td class="hint">{described(field.description)}</td>}
        </tr>
      ))}
    </Table>
  )
}

const Review = ({ busy, changes, drafts, onClose, onSave }: {
  readonly changes: ReadonlyArray<Setting>
  readonly drafts: Texts
  readonly busy: boolean
  readonly onSave: () => void
  readonly onClose: () => void
}) => {
  const { common, settings: t } = useTexts()
  return (
    <Dialog name={t.review} onClose={onClose} wide>
      <FieldTable
        name={t.changes}
        columns={[t.field, t.now, t.new]}
        fields={changes}
        first={(field) => textOf(field.configured)}
        second={(field) => (drafts.get(field.path) ?? "").trim()}
        empty={t.noChanges}
      />
      <div class="actions">
        <button type="button" onClick={onClose}>{common.cancel}</button>
        <button type="button" class="primary" disabled={busy || changes.length === 0} onClick={onSave}>
          {common.save}
        </button>
      </div>
    </Dialog>
  )
}

const FromFile = ({ fields }: { readonly fields: ReadonlyArray<Setting> }) => {
  const t = useTexts().settings
  return (
    <Section name={t.fromFile}>
      <p class="hint">{t.fromFileHint}</p>
      <FieldTable
        name={t.fromFile}
        isDescribed
        empty={t.noneFound}
        columns={[t.field, t.configured, t.inEffect]}
        fields={fields}
        first={(field) => textOf(field.configured)}
        second={(field) => textOf(field.effective)}
      />
    </Section>
  )
}

/** What the configuration and the environment say and do not do. */
const Warnings = ({ warnings }: Pick<SettingsFields, "warnings">) => {
  const t = useTexts().settings
  return warnings.length === 0 ? null : (
    <Section name={t.warnings}>
      <p class="hint">{t.warningsHint}</p>
      <ul class="stack">
        {warnings.map((warning) => <li key={warning} class="notice warn">{warning}</li>)}
      </ul>
    </Section>
  )
}

/** Changes the admin password, which ends all sessions. */
const Password = () => {
  const t = useTexts().settings
  const lock = useLock()
  const change = async (read: ReadField) => {
    const payload = { current_password: read("present"), new_password: read("new") }
    const reply = await act((client) => client["admin-settings"].password({ payload }), {
      done: () => t.passwordChanged
    })
    if (reply?.force_relogin === true) signedOut()
  }
  return (
    <Form class="card" onSubmit={change}>
      {(busy) => (
        <>
          <h2>{t.password}</h2>
          <div class="row">
            <Field label={t.presentPassword}>
              <input name="present" type="password" autocomplete="current-password" required />
            </Field>
            <Field label={t.newPassword}>
              <input
                name="new"
                type="password"
                autocomplete="new-password"
                required
                aria-describedby="password-hint"
              />
            </Field>
            <button type="submit" disabled={busy || lock !== undefined} title={lock}>{t.changePassword}</button>
          </div>
          <p class="hint" id="password-hint">{t.passwordHint}</p>
        </>
      )}
    </Form>
  )
}

const SettingsForm = ({ fields, isShown, revision }: SettingsFields & {
  /** Whether a field is among those that are looked for. */
  readonly isShown: (field: Setting) => boolean
}) => {
  const { failures, settings: t } = useTexts()
  const [drafts, setDrafts] = useState<Texts>(new Map())
  const [faults, setFaults] = useState<ReadonlyMap<string, string>>(new Map())
  const [failure, setFailure] = useState<string>()
  const [reviewing, setReviewing] = useState(false)
  const lock = useLock()
  // The revision of the configuration that the form showed at the first change.
  const seen = useRef<string | undefined>(undefined)
  const writable = fields.filter((field) => field.writable)
  const configured = configuredTexts(writable)
  const changes = changesOf(writable, configured, drafts)
  useUnsaved(changes.length > 0)

  const draft = (field: Setting, text: string) => {
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
      if (lines.length > 0) return [[field.path, t.faultyLines(lines.join(", "))]]
      // The field says itself what is wrong with a number.
      return faultOf(field, drafts.get(field.path) ?? "") === undefined ? [] : [[field.path, ""]]
    })
    if (wrong.length > 0) refuse(new Map(wrong), t.refused)
    else setReviewing(true)
  }
  const refuse = (found: ReadonlyMap<string, string>, text: string) => {
    setFaults(new Map([...found].filter(([, reason]) => reason !== "")))
    setFailure(text)
    const [first] = found.keys()
    if (first !== undefined) setTimeout(() => document.getElementById(`setting-${first}`)?.focus())
  }
  const [busy, save] = useWork(async () => {
    try {
      const ifMatch = { "if-match": `"${seen.current ?? revision}"` }
      const response = await rest("PUT", "/admin/settings", patchOf(changes, drafts), ifMatch)
      const reply = await response.json().catch(() => ({})) as Refusal
      setReviewing(false)
      if (response.ok) {
        await reload("settings", "config", "host")
        report(t.saved)
        discard()
      } else if (response.status === 409) {
        seen.current = undefined
        await reload("settings")
        setFailure(t.changedMeanwhile)
      } else {
        const found = new Map<string, string>()
        for (const { field, message } of reply.faults ?? []) {
          const path = fieldAt(writable, field)?.path
          if (path !== undefined) found.set(path, message)
        }
        refuse(found, reply.detail ?? failures.status(response.status))
      }
    } catch (reason) {
      setReviewing(false)
      setFailure(failureText(reason))
    }
  })

  return (
    <>
      <form class="stack" aria-label={t.form} onSubmit={review} noValidate>
        {groupsOf(writable.filter(isShown)).map(([group, members]) => (
          <fieldset key={group} class="card settings">
            <legend>{t.groups(group)}</legend>
            <div class="settings-grid">
              {members.map((field) => (
                <FieldView
                  key={field.path}
                  field={field}
                  text={drafts.get(field.path) ?? configured.get(field.path) ?? ""}
                  changed={changes.includes(field)}
                  fault={faults.get(field.path)}
                  onText={(text) => draft(field, text)}
                />
              ))}
            </div>
          </fieldset>
        ))}
        <Failure text={failure} />
        {(changes.length > 0 || drafts.size > 0) && (
          <div class="actions sticky">
            <button type="submit" class="primary" disabled={changes.length === 0 || lock !== undefined} title={lock}>
              {t.review}
            </button>
            <button type="button" onClick={discard}>{t.discard}</button>
            {changes.length > 0 && <span class="hint">{t.changeCount(changes.length)}</span>}
          </div>
        )}
      </form>
      {reviewing && (
        <Review
          changes={changes}
          drafts={drafts}
          busy={busy}
          onSave={() => save()}
          onClose={() => setReviewing(false)}
        />
      )}
    </>
  )
}

export const Settings = () => {
  const t = useTexts()
  const nameOf = useSettingName()
  const { q = "" } = useQuery()
  const isShown = (field: Setting) => q === "" || isSought(field, nameOf(field), q)
  return (
    <>
      <Heading name={t.common.pages.settings} />
      <p class="lead">{t.settings.lead}</p>
      <div class="row">
        <Search label={t.settings.search} value={q} onSearch={(text) => choose({ q: text })} />
      </div>
      <Loaded atom={fieldsAtom}>
        {(settings) => (
          <>
            {q === "" && <Warnings warnings={settings.warnings} />}
            <SettingsForm {...settings} isShown={isShown} />
            {q === "" && <Password />}
            {q === "" && <AdminTokens />}
            <FromFile fields={settings.fields.filter((field) => !field.writable && isShown(field))} />
          </>
        )}
      </Loaded>
    </>
  )
}
