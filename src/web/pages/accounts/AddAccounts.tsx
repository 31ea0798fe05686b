/**
 * Adds accounts from lines of text: shows a preview of each line first, then its result.
 */
import * as Exit from "effect/Exit"
import { useRef, useState } from "preact/hooks"
import { Badge } from "../../parts/Badge.tsx"
import { Dialog } from "../../parts/Dialog.tsx"
import { Failure, Select, TextArea, useWork } from "../../parts/Form.tsx"
import { numbers, Table } from "../../parts/Table.tsx"
import { call, report } from "../../state/actions.ts"
import { causeText } from "../../state/failure.ts"
import { reload } from "../../state/reads.ts"
import { useTexts } from "../../state/texts.ts"
import { parseAccounts } from "./parseAccounts.ts"
import { WhoseToken } from "./WhoseToken.tsx"

interface Line {
  readonly line: number
  readonly identifier: string
  readonly ok: boolean
  readonly detail: string
}

interface Stage {
  readonly name: "preview" | "results"
  readonly lines: ReadonlyArray<Line>
  readonly changed: number
}

const shown = 200

/** If not all lines are shown, the refused ones come first. */
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
        columns={[...numbers(t.line), t.account, t.result]}
        rows={lines.length}
        empty={t.noLines}
      >
        {ordered(lines).slice(0, shown).map((line) => (
          <tr key={line.line}>
            <td class="number">{line.line}</td>
            <th scope="row" class="text">{line.identifier || "–"}</th>
            <td>
              {line.ok
                ? <Badge sign="✓" tone="good" text={okText} />
                : <Badge sign="✕" tone="bad" text={t.details(line.detail)} />}
            </td>
          </tr>
        ))}
      </Table>
      {lines.length > shown && <p class="hint">{t.moreLines(lines.length - shown)}</p>}
    </>
  )
}

export const AddAccounts = ({ onClose, upstream: first, upstreams }: {
  /** The upstreams to choose from; empty for `default` alone. */
  readonly upstreams: ReadonlyArray<string>
  /** The upstream that is chosen at first, if it is one of them. */
  readonly upstream: string
  readonly onClose: () => void
}) => {
  const { addAccounts: t, common } = useTexts()
  const field = useRef<HTMLTextAreaElement>(null)
  const [stage, setStage] = useState<Stage>()
  const [failure, setFailure] = useState<string>()
  const [chosen, setUpstream] = useState(first)
  const upstream = upstreams.includes(chosen) ? chosen : upstreams[0]
  const [busy, send] = useWork(async (dryRun: boolean) => {
    setFailure(undefined)
    const parsed = parseAccounts(field.current?.value ?? "")
    const good = parsed.flatMap(({ account, line }) => account === undefined ? [] : [{ account, line }])
    const accounts = good.map(({ account }) => ({ ...(upstream === undefined ? {} : { upstream }), ...account }))
    const exit = await call((client) =>
      client["admin-accounts"].batch({ payload: { action: "add", accounts, dry_run: dryRun } })
    )
    if (Exit.isFailure(exit)) return setFailure(causeText(exit.cause))
    const { changed, config_writable, results } = exit.value
    const byLine = new Map(results.map((result) => [good[result.index]?.line, result]))
    const lines = parsed.map(({ line }): Line => {
      const { detail, identifier, ok } = byLine.get(line) ?? { identifier: "", ok: false, detail: "not understood" }
      return { line, identifier, ok, detail }
    })
    if (!dryRun) await reload("accounts", "config", "host")
    setStage({ name: dryRun ? "preview" : "results", lines, changed })
    if (dryRun) return undefined
    return report(t.done(changed) + (config_writable ? "" : ` ${common.notLasting}`))
  })
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
            {upstream !== undefined && (
              <Select
                label={t.upstream}
                value={upstream}
                options={upstreams.map((each) => [each, each])}
                onValue={(next) => {
                  setUpstream(next)
                  setStage(undefined)
                }}
              />
            )}
            <TextArea
              ref={field}
              label={t.field}
              class="code"
              rows={8}
              spellcheck={false}
              autocomplete="off"
              placeholder={"ada@example.com  password\n13800138000----password\na-token"}
              aria-describedby="add-accounts-hint"
              onInput={() => setStage(undefined)}
            />
            <p class="hint" id="add-accounts-hint">{t.hint}</p>
            {stage !== undefined && <WhoseToken given={field.current?.value ?? ""} />}
            {stage !== undefined && <Lines name={t.preview} lines={stage.lines} okText={t.willAdd} />}
          </>
        )}
      <Failure text={failure} />
      <div class="actions">
        <button type="button" onClick={onClose}>{results ? common.close : common.cancel}</button>
        {!results && (
          <button
            type="button"
            class={stage === undefined ? "primary" : ""}
            disabled={busy}
            onClick={() => send(true)}
          >
            {t.preview}
          </button>
        )}
        {stage?.name === "preview" && (
          <button
            type="button"
            class="primary"
            disabled={busy || stage.changed === 0}
            onClick={() => send(false)}
          >
            {t.add(stage.changed)}
          </button>
        )}
      </div>
    </Dialog>
  )
}
