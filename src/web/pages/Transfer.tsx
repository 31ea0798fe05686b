/**
 * Import and export of the configuration, and its sync to the hosting platform.
 */
import * as Exit from "effect/Exit"
import { useRef, useState } from "preact/hooks"
import { Select, TextArea, useWork } from "../parts/Form.tsx"
import { dateTime } from "../parts/format.ts"
import { Heading, Section } from "../parts/Heading.tsx"
import { Loaded } from "../parts/Loaded.tsx"
import { Facts } from "../parts/Table.tsx"
import { act, call, copyText, reload, report } from "../state/actions.ts"
import { Admin } from "../state/client.ts"
import { causeText, failureText } from "../state/failure.ts"
import { useTexts } from "../state/preferences.ts"
import { DurabilityNotice } from "./configuration.tsx"

const Export = () => {
  const { common, transfer: t } = useTexts()
  const [text, setText] = useState("")
  const [busy, load] = useWork(async () => {
    const reply = await act((client) => client["admin-config"].export(), { done: () => t.exported })
    if (reply !== undefined) setText(JSON.stringify(reply.config, null, 2))
  })
  return (
    <Section class="card" name={t.export}>
      <p class="hint">{t.exportHint}</p>
      <div class="actions">
        <button type="button" class="primary" disabled={busy} onClick={() => load()}>{t.export}</button>
        {text !== "" && <button type="button" onClick={() => void copyText(text, t.copied)}>{common.copy}</button>}
      </div>
      <TextArea label={t.exportedField} class="code" rows={10} readOnly value={text} spellcheck={false} />
    </Section>
  )
}

interface Preview {
  readonly failed: boolean
  readonly text: string
}

const Import = () => {
  const t = useTexts().transfer
  const field = useRef<HTMLTextAreaElement>(null)
  const [mode, setMode] = useState<"merge" | "replace">("merge")
  const [preview, setPreview] = useState<Preview>()
  const [busy, send] = useWork(async (dryRun: boolean) => {
    let config: unknown
    try {
      config = JSON.parse(field.current?.value ?? "")
    } catch (reason) {
      return setPreview({ failed: true, text: t.notJson(failureText(reason)) })
    }
    if (typeof config !== "object" || config === null || Array.isArray(config)) {
      return setPreview({ failed: true, text: t.notObject })
    }
    const payload = config as { readonly [name: string]: never }
    const query = { mode, ...(dryRun ? { dry_run: "true" as const } : {}) }
    const exit = await call((client) => client["admin-config"].import({ query, payload }))
    if (Exit.isFailure(exit)) return setPreview({ failed: true, text: causeText(exit.cause) })
    const { imported_accounts, imported_keys } = exit.value
    if (dryRun) return setPreview({ failed: false, text: t.wouldImport(imported_keys, imported_accounts) })
    setPreview(undefined)
    if (field.current !== null) field.current.value = ""
    reload("accounts", "keys", "config", "settings", "host")
    return report(t.imported(imported_keys, imported_accounts))
  })
  return (
    <Section class="card" name={t.import}>
      <p class="hint">{t.importHint}</p>
      <TextArea
        ref={field}
        label={t.importField}
        class="code"
        rows={10}
        spellcheck={false}
        autocomplete="off"
        placeholder={`{ "keys": ["…"], "accounts": [{ "email": "…", "password": "…" }] }`}
        onInput={() => setPreview(undefined)}
      />
      <div class="row">
        <Select
          label={t.mode}
          value={mode}
          options={[["merge", t.merge], ["replace", t.replace]]}
          onValue={(value) => {
            setMode(value)
            setPreview(undefined)
          }}
        />
        <div class="actions">
          <button type="button" disabled={busy} onClick={() => send(true)}>{t.preview}</button>
          <button type="button" class="primary" disabled={busy} onClick={() => send(false)}>{t.doImport}</button>
        </div>
      </div>
      {preview !== undefined && (
        <p class={`notice ${preview.failed ? "bad" : "good"}`} role={preview.failed ? "alert" : "status"}>
          {preview.text}
        </p>
      )}
    </Section>
  )
}

const statusAtom = Admin.query("admin-host", "status", { reactivityKeys: ["host"] })
const hostAtom = Admin.query("admin-host", "config", { reactivityKeys: ["host"] })

const HostSync = () => {
  const { common, transfer: t } = useTexts()
  const [busy, sync] = useWork(() =>
    act((client) => client["admin-host"].sync({ payload: {} }), {
      done: (reply) => reply.message,
      subjects: ["host", "accounts"]
    })
  )
  return (
    <Section class="card" name={t.hostSync}>
      <Loaded atom={statusAtom}>
        {({ has_synced_before, last_sync_time, synced }) => (
          <Facts
            facts={[
              [t.state, synced ? t.synced : has_synced_before ? t.differs : t.never],
              [t.lastSync, last_sync_time === 0 ? common.none : dateTime(last_sync_time * 1000)]
            ]}
          />
        )}
      </Loaded>
      <Loaded atom={hostAtom}>
        {({ has_token, project_id }) => (
          <>
            <Facts
              facts={[[t.project, project_id || common.none], [t.token, has_token ? t.tokenThere : common.none]]}
            />
            {(!has_token || project_id === "") && <p class="hint">{t.hostHint}</p>}
          </>
        )}
      </Loaded>
      <div class="actions">
        <button type="button" disabled={busy} onClick={() => sync()}>{t.syncNow}</button>
      </div>
    </Section>
  )
}

export const Transfer = () => (
  <>
    <Heading name={useTexts().common.pages.transfer} />
    <DurabilityNotice />
    <div class="halves">
      <Export />
      <Import />
    </div>
    <HostSync />
  </>
)
