/**
 * What the playground shows of a reply beside the conversation: reasoning, raw frames, the request as code.
 */
import { useState } from "preact/hooks"
import { copyText } from "../parts/copy.ts"
import { elapsed } from "../parts/format.ts"
import { Table } from "../parts/Table.tsx"
import { useTexts } from "../state/preferences.ts"
import { linkTo } from "../state/route.ts"
import { curlOf, sdkOf } from "./code.ts"
import type { Ask } from "./conversation.ts"
import type { Round } from "./state.ts"

/** Rows of frames at a time. */
const rowsAtATime = 100

export const RawFrames = ({ rounds }: { readonly rounds: ReadonlyArray<Round> }) => {
  const texts = useTexts()
  const t = texts.playground
  const [page, setPage] = useState<number>()
  const rows = rounds.flatMap((round) => round.frames.map((frame) => ({ round, frame })))
  const pages = Math.max(1, Math.ceil(rows.length / rowsAtATime))
  // The last page, unless one has turned back: it grows while the reply comes in.
  const shown = Math.min(page ?? pages, pages)
  const first = (shown - 1) * rowsAtATime
  const last = rounds.at(-1)
  return (
    <section aria-label={t.frames} role="region">
      <div class="actions between">
        <h2>{t.frames}</h2>
        {last?.status === undefined ? null : (
          <p class="hint">
            {t.status(last.status)}
            {last.requestId === undefined
              ? null
              : (
                <>
                  {" · "}
                  <a href={linkTo("requests", last.requestId)}>{t.inspect}</a>
                </>
              )}
          </p>
        )}
      </div>
      <Table
        name={t.frames}
        scroll
        columns={[
          ...(rounds.length > 1 ? [{ name: t.round, number: true }] : []),
          { name: t.time, number: true },
          { name: t.frame }
        ]}
        rows={rows.length}
        empty={t.noFrames}
      >
        {rows.slice(first, first + rowsAtATime).map(({ frame, round }, index) => (
          <tr key={first + index}>
            {rounds.length > 1 ? <td class="number">{round.number}</td> : null}
            <td class="number">{elapsed(frame.at)}</td>
            <td>
              <pre>{frame.data.trimEnd()}</pre>
            </td>
          </tr>
        ))}
      </Table>
      {pages === 1 ? null : (
        <div class="pager">
          <button type="button" disabled={shown <= 1} onClick={() => setPage(shown - 1)}>
            {texts.common.previous}
          </button>
          <span>{texts.common.shown(first + 1, Math.min(first + rowsAtATime, rows.length), rows.length)}</span>
          <button
            type="button"
            disabled={shown >= pages}
            onClick={() => setPage(shown + 1 >= pages ? undefined : shown + 1)}
          >
            {texts.common.next}
          </button>
        </div>
      )}
    </section>
  )
}

export const Reasoning = ({ text }: { readonly text: string }) => {
  const t = useTexts().playground
  return (
    <section aria-label={t.reasoning} role="region">
      <h2>{t.reasoning}</h2>
      <pre class="reasoning">{text}</pre>
    </section>
  )
}

const CodeBlock = ({ code, name }: { readonly name: string; readonly code: string }) => {
  const t = useTexts().playground
  return (
    <section aria-label={name} role="region">
      <div class="actions between">
        <h2>{name}</h2>
        <button type="button" onClick={() => void copyText(code, t.copied(name))}>{t.copy(name)}</button>
      </div>
      <div class="code-box" tabIndex={0} role="group" aria-label={name}>
        <pre>{code}</pre>
      </div>
    </section>
  )
}

export const Code = ({ ask }: { readonly ask: Ask }) => {
  const t = useTexts().playground
  return (
    <div class="halves">
      <CodeBlock name={t.curl} code={curlOf(ask)} />
      <CodeBlock name={t.sdk} code={sdkOf(ask)} />
    </div>
  )
}
