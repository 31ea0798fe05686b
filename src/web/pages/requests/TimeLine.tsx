/**
 * The timeline: the frames of both sides in order of time.
 */
import { useMemo, useState } from "preact/hooks"
import { Select } from "../../parts/Form.tsx"
import { elapsed } from "../../parts/format.ts"
import { Section } from "../../parts/Heading.tsx"
import { LongTable, numbers } from "../../parts/Table.tsx"
import { useTexts } from "../../state/preferences.ts"
import type { RequestRecord } from "../../state/requests.ts"

type Side = "client" | "upstream"

interface Row {
  readonly at: number
  readonly side: Side
  readonly data: string
}

/** The resolution of a track: closer frames share a mark. */
const marksAtMost = 240

/** The frames of both sides in order of time. At the same time, the upstream's come first. */
const rowsOf = (record: RequestRecord): ReadonlyArray<Row> => {
  const rows: Array<Row> = []
  for (const round of record.upstream) {
    for (const frame of round.frames) rows.push({ at: frame.at_ms, side: "upstream", data: frame.data })
  }
  for (const frame of record.reply?.frames ?? []) rows.push({ at: frame.at_ms, side: "client", data: frame.data })
  return rows.sort((a, b) => a.at - b.at || (a.side === b.side ? 0 : a.side === "upstream" ? -1 : 1))
}

/** The positions of a side's marks, from 0 to 1. */
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
  const t = useTexts().inspector
  const [side, setSide] = useState<Side | "">("")
  const all = useMemo(() => rowsOf(record), [record])
  const end = Math.max(record.duration_ms ?? 0, all.at(-1)?.at ?? 0)
  const rows = useMemo(() => side === "" ? all : all.filter((row) => row.side === side), [all, side])
  return (
    <Section
      name={t.timeLine}
      actions={
        <Select
          class="inline"
          label={t.side}
          value={side}
          options={[["", t.both], ["client", t.client], ["upstream", t.upstreamSide]]}
          onValue={setSide}
        />
      }
    >
      {all.length > 0 && (
        <div class="tracks" aria-hidden="true">
          <Track name="upstream" marks={marksOf(all, "upstream", end)} />
          <Track name="client" marks={marksOf(all, "client", end)} />
          <div class="scale hint">
            <span>0</span>
            <span>{elapsed(end)}</span>
          </div>
        </div>
      )}
      <LongTable
        key={side}
        name={t.frames}
        columns={[...numbers(t.time), t.side, t.frame]}
        rows={rows}
        empty={t.noFrames}
      >
        {(row) => (
          <>
            <td class="number">{row.at.toFixed(1)} ms</td>
            <td>{row.side}</td>
            <td>
              <pre>{row.data.trimEnd()}</pre>
            </td>
          </>
        )}
      </LongTable>
    </Section>
  )
}
