/**
 * The frames of both sides on one time line.
 */
import { useMemo, useState } from "preact/hooks"
import { elapsed } from "../../parts/format.ts"
import { Select } from "../../parts/Select.tsx"
import { Table } from "../../parts/Table.tsx"
import { useTexts } from "../../state/preferences.ts"
import type { RequestRecord } from "../../state/requests.ts"

type Side = "client" | "upstream"

interface Row {
  readonly at: number
  readonly side: Side
  readonly data: string
}

const rowsAtATime = 100
/** Marks that a track shows at most: more of them are one stroke. */
const marksAtMost = 240

/** Both sides in the order of time; of the same moment, the upstream's come first. */
const rowsOf = (record: RequestRecord): ReadonlyArray<Row> => {
  const rows: Array<Row> = []
  for (const round of record.upstream) {
    for (const frame of round.frames) rows.push({ at: frame.at_ms, side: "upstream", data: frame.data })
  }
  for (const frame of record.reply?.frames ?? []) rows.push({ at: frame.at_ms, side: "client", data: frame.data })
  return rows.sort((a, b) => a.at - b.at || (a.side === b.side ? 0 : a.side === "upstream" ? -1 : 1))
}

/** Where marks stand, in parts of the whole; close ones are one. */
const marksOf = (rows: ReadonlyArray<Row>, side: Side, end: number): ReadonlyArray<number> => {
  const places = new Set<number>()
  for (const row of rows) {
    if (row.side === side) places.add(Math.round((row.at / Math.max(1, end)) * marksAtMost) / marksAtMost)
  }
  return [...places]
}

const Track = ({ marks, name }: { readonly name: string; readonly marks: ReadonlyArray<number> }) => (
  <div class={`track ${name}`}>
    <span class="hint">{name}</span>
    <span class="marks">
      {marks.map((place) => <span key={place} style={{ left: `${place * 100}%` }} />)}
    </span>
  </div>
)

export const TimeLine = ({ record }: { readonly record: RequestRecord }) => {
  const texts = useTexts()
  const t = texts.inspector
  const [page, setPage] = useState(1)
  const [side, setSide] = useState("")
  const all = useMemo(() => rowsOf(record), [record])
  const end = Math.max(record.duration_ms ?? 0, all.at(-1)?.at ?? 0)
  const rows = useMemo(() => side === "" ? all : all.filter((row) => row.side === side), [all, side])
  const pages = Math.max(1, Math.ceil(rows.length / rowsAtATime))
  const shown = Math.min(page, pages)
  const first = (shown - 1) * rowsAtATime
  return (
    <section role="region" aria-label={t.timeLine}>
      <div class="actions between">
        <h2>{t.timeLine}</h2>
        <Select
          class="inline"
          label={t.side}
          value={side}
          options={[["", t.both], ["client", t.client], ["upstream", t.upstreamSide]]}
          onValue={(value) => {
            setSide(value)
            setPage(1)
          }}
        />
      </div>
      {all.length === 0 ? null : (
        <div class="tracks" aria-hidden="true">
          <Track name="upstream" marks={marksOf(all, "upstream", end)} />
          <Track name="client" marks={marksOf(all, "client", end)} />
          <div class="scale hint">
            <span>0</span>
            <span>{elapsed(end)}</span>
          </div>
        </div>
      )}
      <Table
        name={t.frames}
        scroll
        columns={[{ name: t.time, number: true }, { name: t.side }, { name: t.frame }]}
        rows={rows.length}
        empty={t.noFrames}
      >
        {rows.slice(first, first + rowsAtATime).map((row, index) => (
          <tr key={first + index}>
            <td class="number">{row.at.toFixed(1)} ms</td>
            <td>{row.side}</td>
            <td>
              <pre>{row.data.trimEnd()}</pre>
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
          <button type="button" disabled={shown >= pages} onClick={() => setPage(shown + 1)}>
            {texts.common.next}
          </button>
        </div>
      )}
    </section>
  )
}
