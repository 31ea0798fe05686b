/**
 * Import and export of the configuration, and its sync to the hosting platform.
 */
import * as Exit from "effect/Exit"
import { useRef, useState } from "preact/hooks"
import { fieldsAtom } from "../forms/Entry.tsx"
import { at as valueAt, type Entry, type Json, textOf } from "../forms/fields.ts"
import { useLock } from "../parts/configuration.tsx"
import { ConfirmDialog } from "../parts/Dialog.tsx"
import { Facts } from "../parts/Facts.tsx"
import { Failure, Select, TextArea, useWork } from "../parts/Form.tsx"
import { bytes, exactTime, number } from "../parts/format.ts"
import { Heading, Section } from "../parts/Heading.tsx"
import { Loaded } from "../parts/Loaded.tsx"
import { numbers, Table } from "../parts/Table.tsx"
import { act, call, copyText, report } from "../state/actions.ts"
import type { Reply } from "../state/client.ts"
import { causeText, failureText } from "../state/failure.ts"
import { readOf, reload } from "../state/reads.ts"
import { useValue } from "../state/registry.ts"
import { useUnsaved } from "../state/route.ts"
import { useTexts } from "../state/texts.ts"

/** Saves a text as a file of the browser. */
const saveAs = (name: string, text: string): void => {
  const address = URL.createObjectURL(new Blob([text], { type: "application/json" }))
  Object.assign(document.createElement("a"), { href: address, download: name }).click()
  // The browser reads it after the press.
  setTimeout(() => URL.revokeObjectURL(address), 60_000)
}

const Export = () => {
  const { common, transfer: t } = useTexts()
  const [busy, take] = useWork(async (copies: boolean) => {
    const reply = await act((client) => client["admin-config"].export(), {})
    if (reply === undefined) return undefined
    const text = JSON.stringify(reply.config, null, 2)
    if (copies) return copyText(text, t.copied)
    const name = `gateway-${new Date().toISOString().slice(0, 10)}.json`
    saveAs(name, text)
    return report(t.exported(name))
  })
  return (
    <Section class="card" name={t.export}>
      <p class="hint">{t.exportHint}</p>
      <div class="actions">
        <button type="button" class="primary" disabled={busy} onClick={() => take(false)}>{t.download}</button>
        <button type="button" disabled={busy} onClick={() => take(true)}>{common.copy}</button>
      </div>
    </Section>
  )
}

type Changes = Reply<"admin-config", "import">["changes"]
type ListChanges = Changes["keys"]

/** A list's changes in figures: `+1 −48 ~0, 1 afterwards`. */
const Difference = ({ changes: { added, after, changed, removed }, name }: {
  readonly name: string
  readonly changes: ListChanges
}) => {
  const t = useTexts().transfer
  return (
    <tr>
      <th scope="row">{name}</th>
      <td class="number">{added === 0 ? "0" : `+${number(added)}`}</td>
      <td class="number">
        {removed === 0 ? "0" : <strong class="bad">{`−${number(removed)}`}</strong>}
      </td>
      <td class="number">{number(changed)}</td>
      <td class="number" title={t.after}>{number(after)}</td>
    </tr>
  )
}

/** Bounds the settings and the names that a preview lists. */
const [mostSettings, mostNames] = [40, 12]

/** The settings of groups that change, each with its value before and after. */
const SettingChanges = ({ config, groups, mode }: {
  readonly groups: ReadonlyArray<string>
  readonly config: Entry
  readonly mode: Mode
}) => {
  const t = useTexts().transfer
  const fields = useValue(fieldsAtom)?.fields ?? []
  const changed = fields.flatMap((field) => {
    if (!groups.includes(field.path.split(".")[0]!)) return []
    const [before, after] = [field.configured, valueAt(config, field.path)]
    if (JSON.stringify(before) === JSON.stringify(after) || (after === null && mode === "merge")) return []
    const shown = (value: Json) => value === null ? t.unset : field.sensitive === true ? t.hidden : textOf(value)
    return [{ path: field.path, before: shown(before), after: shown(after) }]
  })
  return (
    <ul class="differences">
      {changed.slice(0, mostSettings).map(({ after, before, path }) => (
        <li key={path}>
          <code>{path}</code>
          <span>
            <del>{before}</del> <span aria-hidden="true">→</span> <ins>{after}</ins>
          </span>
        </li>
      ))}
      {changed.length > mostSettings && <li class="hint">{t.moreSettings(changed.length - mostSettings)}</li>}
    </ul>
  )
}

const Differences = ({ changes, config, mode }: {
  readonly changes: Changes
  readonly config: Entry
  readonly mode: Mode
}) => {
  const { common, settings, transfer: t } = useTexts()
  const removed = [...changes.keys.removed_names, ...changes.accounts.removed_names]
  return (
    <>
      <Table
        name={t.changes}
        columns={[t.part, ...numbers(t.added, t.removed, t.changed, t.after)]}
        rows={2}
        empty=""
      >
        <Difference name={common.pages.keys} changes={changes.keys} />
        <Difference name={common.pages.accounts} changes={changes.accounts} />
      </Table>
      {removed.length > 0 && (
        <ul class="differences" aria-label={t.removedNames}>
          {removed.slice(0, mostNames).map((name) => (
            <li key={name}>
              <del>{name}</del>
            </li>
          ))}
          {removed.length > mostNames && <li class="hint">{common.andMore(removed.length - mostNames)}</li>}
        </ul>
      )}
      {changes.settings.length > 0 && (
        <>
          <p class="hint">{t.settingsChange(changes.settings.map(settings.groups).join(", "))}</p>
          <SettingChanges groups={changes.settings} config={config} mode={mode} />
        </>
      )}
    </>
  )
}

/** The longest file that is read, in bytes. The gateway has a limit of its own. */
const longestFile = 32 * 1024 * 1024

/** The word that a replacing import asks for: it is on the page in every language. */
const replaceWord = "replace"

type Mode = "merge" | "replace"

interface Preview {
  readonly failed?: string
  readonly changes?: Changes
  readonly warnings?: ReadonlyArray<string>
}

const Import = () => {
  const t = useTexts().transfer
  const field = useRef<HTMLTextAreaElement>(null)
  const [mode, setMode] = useState<Mode>("merge")
  const [preview, setPreview] = useState<Preview>()
  const lock = useLock()
  const [asking, setAsking] = useState<Changes>()
  const [written, setWritten] = useState(false)
  useUnsaved(written)
  const [given, setGiven] = useState<Entry>({})
  const takeFile = async (file: File | undefined) => {
    if (file === undefined || field.current === null) return
    if (file.size > longestFile) return setPreview({ failed: t.tooLarge(bytes(longestFile)) })
    field.current.value = await file.text()
    setWritten(true)
    start(true)
  }
  const read = (): { readonly [name: string]: never } | undefined => {
    let config: unknown
    try {
      config = JSON.parse(field.current?.value ?? "")
    } catch (reason) {
      setPreview({ failed: t.notJson(failureText(reason)) })
      return undefined
    }
    if (typeof config === "object" && config !== null && !Array.isArray(config)) {
      return config as { readonly [name: string]: never }
    }
    setPreview({ failed: t.notObject })
    return undefined
  }
  const send = async (dryRun: boolean) => {
    const payload = read()
    if (payload === undefined) return undefined
    const query = { mode, ...(dryRun ? { dry_run: "true" as const } : {}) }
    const exit = await call((client) => client["admin-config"].import({ query, payload }))
    if (Exit.isFailure(exit)) {
      setPreview({ failed: causeText(exit.cause) })
      return undefined
    }
    const { changes, warnings } = exit.value
    setGiven((payload["config"] ?? payload) as Entry)
    if (dryRun) setPreview({ changes, warnings })
    return exit.value
  }
  const take = async () => {
    const reply = await send(false)
    if (reply === undefined) return
    setPreview(undefined)
    setWritten(false)
    if (field.current !== null) field.current.value = ""
    await reload("accounts", "keys", "config", "settings", "host")
    const { accounts, keys } = reply.changes
    report(
      accounts.removed + keys.removed === 0
        ? t.imported(reply.imported_keys, reply.imported_accounts)
        : t.replaced(keys.removed, accounts.removed, keys.after, accounts.after)
    )
  }
  const [busy, start] = useWork(async (dryRun: boolean) => {
    if (dryRun) return send(true)
    // What an import removes is shown and asked about first.
    const changes = mode === "replace" ? (await send(true))?.changes : undefined
    if (mode === "replace" && changes === undefined) return undefined
    if (changes !== undefined && changes.keys.removed + changes.accounts.removed + changes.settings.length > 0) {
      return setAsking(changes)
    }
    return take()
  })
  return (
    <Section class="card" name={t.import}>
      <div
        class="stack drop"
        onDragOver={(event) => event.preventDefault()}
        onDrop={(event) => {
          const [file] = event.dataTransfer?.files ?? []
          if (file === undefined) return
          event.preventDefault()
          void takeFile(file)
        }}
      >
        <p class="hint">{t.importHint}</p>
        <div class="actions">
          <label class="button">
            {t.file}
            <input
              class="sr-only"
              type="file"
              accept="application/json,.json"
              onChange={(event) => {
                void takeFile(event.currentTarget.files?.[0])
                event.currentTarget.value = ""
              }}
            />
          </label>
          <span class="hint">{t.dropHint}</span>
        </div>
        <TextArea
          ref={field}
          label={t.importField}
          class="code"
          rows={10}
          spellcheck={false}
          autocomplete="off"
          placeholder={`{ "keys": ["…"], "accounts": [{ "email": "…", "password": "…" }] }`}
          onInput={(event) => {
            setPreview(undefined)
            setWritten(event.currentTarget.value.trim() !== "")
          }}
        />
      </div>
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
          <button
            type="button"
            class={preview?.changes === undefined ? "primary" : ""}
            disabled={busy}
            onClick={() => start(true)}
          >
            {t.preview}
          </button>
        </div>
      </div>
      {preview?.failed !== undefined && <Failure text={preview.failed} />}
      {preview?.changes !== undefined && (
        <div class="stack" role="status" aria-label={t.preview}>
          <p>{t.previewOnly}</p>
          <Differences changes={preview.changes} config={given} mode={mode} />
          {preview.warnings?.map((warning) => <p key={warning} class="notice warn">{warning}</p>)}
        </div>
      )}
      {preview?.changes !== undefined && (
        <div class="actions">
          <button
            type="button"
            class={mode === "replace" ? "danger" : "primary"}
            disabled={busy || lock !== undefined}
            title={lock}
            onClick={() => start(false)}
          >
            {mode === "replace" ? t.doReplace : t.doImport}
          </button>
        </div>
      )}
      {asking !== undefined && (
        <ConfirmDialog
          name={t.replaceAsk}
          action={t.doReplace}
          mustType={replaceWord}
          items={[...asking.keys.removed_names, ...asking.accounts.removed_names]}
          onClose={() => setAsking(undefined)}
          onConfirm={take}
        >
          <p>{t.goes(asking.keys.removed, asking.accounts.removed)}</p>
          <Differences changes={asking} config={given} mode={mode} />
        </ConfirmDialog>
      )}
    </Section>
  )
}

const statusAtom = readOf("admin-host", "status", { reactivityKeys: ["host"] })
const hostAtom = readOf("admin-host", "config", { reactivityKeys: ["host"] })

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
              [t.lastSync, last_sync_time === 0 ? common.none : exactTime(last_sync_time * 1000)]
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
    <div class="halves">
      <Export />
      <Import />
    </div>
    <HostSync />
  </>
)
