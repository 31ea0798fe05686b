/**
 * Import and export of the configuration, and its way to the hosting platform.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { useRef, useState } from "preact/hooks"
import { copyText } from "../parts/copy.ts"
import { dateTime } from "../parts/format.ts"
import { Heading } from "../parts/Heading.tsx"
import { Loaded } from "../parts/Loaded.tsx"
import { Select } from "../parts/Select.tsx"
import { act, call } from "../state/actions.ts"
import { Admin } from "../state/client.ts"
import { causeText, failureText } from "../state/failure.ts"
import { useTexts } from "../state/preferences.ts"
import { Durability } from "./Durability.tsx"

const everything = ["accounts", "keys", "config", "settings", "host"] as const

const Export = () => {
  const texts = useTexts()
  const t = texts.transfer
  const [text, setText] = useState("")
  const [busy, setBusy] = useState(false)
  const load = async () => {
    setBusy(true)
    const reply = await act((client) => client["admin-config"].export(), { done: () => t.exported })
    setBusy(false)
    if (reply !== undefined) setText(JSON.stringify(reply.config, null, 2))
  }
  return (
    <section class="card">
      <h2>{t.export}</h2>
      <p class="hint">{t.exportHint}</p>
      <div class="actions">
        <button type="button" class="primary" disabled={busy} onClick={() => void load()}>{t.export}</button>
        {text === "" ?
          null :
          <button type="button" onClick={() => void copyText(text, t.copied)}>{texts.common.copy}</button>}
      </div>
      <label class="field">
        <span>{t.exportedField}</span>
        <textarea class="code" rows={10} readOnly value={text} spellcheck={false} />
      </label>
    </section>
  )
}

type Preview = { readonly failed: boolean; readonly text: string }

const Import = () => {
  const t = useTexts().transfer
  const field = useRef<HTMLTextAreaElement>(null)
  const [mode, setMode] = useState<"merge" | "replace">("merge")
  const [preview, setPreview] = useState<Preview>()
  const [busy, setBusy] = useState(false)
  const send = async (dryRun: boolean) => {
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
    setBusy(true)
    const exit = await call((client) =>
      client["admin-config"].import({ query: { mode, ...(dryRun ? { dry_run: "true" as const } : {}) }, payload })
    )
    setBusy(false)
    if (Exit.isFailure(exit)) return setPreview({ failed: true, text: causeText(exit.cause) })
    const { imported_accounts, imported_keys } = exit.value
    if (dryRun) return setPreview({ failed: false, text: t.wouldImport(imported_keys, imported_accounts) })
    setPreview(undefined)
    if (field.current !== null) field.current.value = ""
    await act(() => Effect.succeed(exit.value), {
      done: () => t.imported(imported_keys, imported_accounts),
      subjects: everything
    })
    return undefined
  }
  return (
    <section class="card">
      <h2>{t.import}</h2>
      <p class="hint">{t.importHint}</p>
      <label class="field">
        <span>{t.importField}</span>
        <textarea
          ref={field}
          class="code"
          rows={10}
          spellcheck={false}
          autocomplete="off"
          placeholder={`{ "keys": ["…"], "accounts": [{ "email": "…", "password": "…" }] }`}
          onInput={() => setPreview(undefined)}
        />
      </label>
      <div class="row">
        <Select
          label={t.mode}
          value={mode}
          options={[["merge", t.merge], ["replace", t.replace]]}
          onValue={(value) => {
            setMode(value === "replace" ? "replace" : "merge")
            setPreview(undefined)
          }}
        />
        <div class="actions">
          <button type="button" disabled={busy} onClick={() => void send(true)}>{t.preview}</button>
          <button type="button" class="primary" disabled={busy} onClick={() => void send(false)}>{t.doImport}</button>
        </div>
      </div>
      {preview === undefined ?
        null :
        (
          <p class={`notice ${preview.failed ? "bad" : "good"}`} role={preview.failed ? "alert" : "status"}>
            {preview.text}
          </p>
        )}
    </section>
  )
}

const statusAtom = Admin.query("admin-host", "status", { reactivityKeys: ["host"] })
const hostAtom = Admin.query("admin-host", "config", { reactivityKeys: ["host"] })

const HostSync = () => {
  const texts = useTexts()
  const t = texts.transfer
  const [busy, setBusy] = useState(false)
  const sync = async () => {
    setBusy(true)
    await act((client) => client["admin-host"].sync({ payload: {} }), {
      done: (reply) => reply.message,
      subjects: ["host", "accounts"]
    })
    setBusy(false)
  }
  return (
    <section class="card" role="region" aria-label={t.hostSync}>
      <h2>{t.hostSync}</h2>
      <Loaded atom={statusAtom}>
        {(status) => (
          <dl class="facts">
            <dt>{t.state}</dt>
            <dd>{status.synced ? t.synced : status.has_synced_before ? t.differs : t.never}</dd>
            <dt>{t.lastSync}</dt>
            <dd>{status.last_sync_time === 0 ? texts.common.none : dateTime(status.last_sync_time * 1000)}</dd>
          </dl>
        )}
      </Loaded>
      <Loaded atom={hostAtom}>
        {(host) => (
          <>
            <dl class="facts">
              <dt>{t.project}</dt>
              <dd class="text">{host.project_id === "" ? texts.common.none : host.project_id}</dd>
              <dt>{t.token}</dt>
              <dd>{host.has_token ? t.tokenThere : texts.common.none}</dd>
            </dl>
            {host.has_token && host.project_id !== "" ? null : <p class="hint">{t.hostHint}</p>}
          </>
        )}
      </Loaded>
      <div class="actions">
        <button type="button" disabled={busy} onClick={() => void sync()}>{t.syncNow}</button>
      </div>
    </section>
  )
}

export const Transfer = () => {
  const t = useTexts()
  return (
    <>
      <Heading name={t.common.pages.transfer} />
      <Durability />
      <div class="halves">
        <Export />
        <Import />
      </div>
      <HostSync />
    </>
  )
}
