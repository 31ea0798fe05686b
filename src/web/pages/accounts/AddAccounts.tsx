/**
 * Adds accounts from lines: what would become of each is shown first, then what became of it.
 */
import * as Exit from "effect/Exit"
import { useRef, useState } from "preact/hooks"
import { Dialog } from "../../parts/Dialog.tsx"
import { Badge } from "../../parts/State.tsx"
import { Table } from "../../parts/Table.tsx"
import { call, reload, tell } from "../../state/actions.ts"
import { causeText } from "../../state/failure.ts"
import { useTexts } from "../../state/preferences.ts"
import type { ParsedAccount } from "./parseAccounts.ts"
import { parseAccounts } from "./parseAccounts.ts"

interface Line {
  readonly line: number
  readonly identifier: string
  readonly ok: boolean
  readonly detail: string
}

interface Stage {
  readonly name: "preview" | "results"
  readonly lines: ReadonlyArray<Line>
  readonly accounts: ReadonlyArray<ParsedAccount>
  readonly changed: number
}

const shown = 200

/** Refused lines first: they are what one looks for. */
const ordered = (lines: ReadonlyArray<Line>): ReadonlyArray<Line> =>
  lines.length <= shown ? lines : [...lines].sort((a, b) => Number(a.ok) - Number(b.ok))

const Lines = ({ lines, name, okText }: {
  readonly name: string
  readonly lines: ReadonlyArray<Line>
  readonly okText: string
}) => {
  const t = useTexts().addAccounts
  return (
    <>
      <Table
        name={name}
        scroll
        columns={[{ name: t.line, number: true }, { name: t.account }, { name: t.result }]}
        rows={lines.length}
        empty={t.noLines}
      >
        {ordered(lines).slice(0, shown).map((line) => (
          <tr key={line.line}>
            <td class="number">{line.line}</td>
            <th scope="row" class="text">{line.identifier === "" ? "–" : line.identifier}</th>
            <td>
              {line.ok
                ? <Badge sign="✓" tone="good" text={okText} />
                : <Badge sign="✕" tone="bad" text={t.details(line.detail)} />}
            </td>
          </tr>
        ))}
      </Table>
      {lines.length > shown ? <p class="hint">{t.moreLines(lines.length - shown)}</p> : null}
    </>
  )
}

export const AddAccounts = ({ onClose }: { readonly onClose: () => void }) => {
  const texts = useTexts()
  const t = texts.addAccounts
  const field = useRef<HTMLTextAreaElement>(null)
  const [stage, setStage] = useState<Stage>()
  const [busy, setBusy] = useState(false)
  const [failure, setFailure] = useState<string>()

  /** Sends the lines; `undefined` when the gateway refused the whole. */
  const send = async (dryRun: boolean) => {
    setBusy(true)
    setFailure(undefined)
    const parsed = parseAccounts(field.current?.value ?? "")
    const good = parsed.filter((line) => line.account !== undefined)
    const accounts = good.map((line) => line.account!)
    const exit = await call((client) =>
      client["admin-accounts"].batch({ payload: { action: "add", accounts, dry_run: dryRun } })
    )
    setBusy(false)
    if (Exit.isFailure(exit)) {
      setFailure(causeText(exit.cause))
      return
    }
    const reply = exit.value
    const results = new Map(reply.results.map((result) => [good[result.index]?.line, result]))
    const lines = parsed.map(({ line }): Line => {
      const result = results.get(line)
      return result === undefined
        ? { line, identifier: "", ok: false, detail: "not understood" }
        : { line, identifier: result.identifier, ok: result.ok, detail: result.detail }
    })
    setStage({ name: dryRun ? "preview" : "results", lines, accounts, changed: reply.changed })
    if (dryRun) return
    reload("accounts", "config", "host")
    tell(t.done(reply.changed) + (reply.config_writable ? "" : ` ${texts.common.notLasting}`))
  }

  const results = stage?.name === "results"
  return (
    <Dialog name={t.title} onClose={onClose} wide>
      {results
        ? (
          <>
            <p>{t.done(stage.changed)}</p>
            <Lines name={t.results} lines={stage.lines} okText={t.added} />
          </>
        )
        : (
          <>
            <label class="field">
              <span>{t.field}</span>
              <textarea
                ref={field}
                class="code"
                rows={8}
                spellcheck={false}
                autocomplete="off"
                placeholder={"ada@example.com  password\n13800138000----password\na-token"}
                aria-describedby="add-accounts-hint"
                onInput={() => setStage(undefined)}
              />
            </label>
            <p class="hint" id="add-accounts-hint">{t.hint}</p>
            {stage === undefined ? null : <Lines name={t.preview} lines={stage.lines} okText={t.willAdd} />}
          </>
        )}
      {failure === undefined ? null : <p class="notice bad" role="alert">{failure}</p>}
      <div class="actions">
        <button type="button" onClick={onClose}>{results ? texts.common.close : texts.common.cancel}</button>
        {results ?
          null :
          (
            <button
              type="button"
              class={stage === undefined ? "primary" : ""}
              disabled={busy}
              onClick={() => void send(true)}
            >
              {t.preview}
            </button>
          )}
        {stage?.name === "preview"
          ? (
            <button
              type="button"
              class="primary"
              disabled={busy || stage.changed === 0}
              onClick={() => void send(false)}
            >
              {t.add(stage.changed)}
            </button>
          )
          : null}
      </div>
    </Dialog>
  )
}
