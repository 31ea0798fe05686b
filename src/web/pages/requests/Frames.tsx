/**
 * The frames of both sides beside each other: when each came, and what it adds. A click shows the frame itself.
 */
import { useEffect, useRef, useState } from "preact/hooks"
import { Section } from "../../parts/Heading.tsx"
import { numbers, Table } from "../../parts/Table.tsx"
import { dataOf } from "../../state/frames.ts"
import type { RequestRecord } from "../../state/requests.ts"
import { useTexts } from "../../state/texts.ts"
import type { Part } from "./frameParts.ts"
import { moment } from "./moment.ts"
import { readable, shownCharacters } from "./readable.ts"
import type { ReadRow, ReadSides } from "./sides.ts"

/** A time to show; `count` tells two wishes for the same time apart. */
export interface Wanted {
  readonly at: number
  readonly count: number
}

const rowsAtATime = 100
/** Characters of a part in a row. */
const partLength = 200

const shownText = (text: string): string =>
  JSON.stringify(text.length > partLength ? `${text.slice(0, partLength)}…` : text)

const quoted: ReadonlySet<Part["kind"]> = new Set(["text", "reasoning", "arguments"])

/** What a frame adds, in one line. */
const Adds = ({ row: { name, parts } }: { readonly row: ReadRow }) => {
  const t = useTexts().inspector
  if (parts.length === 0) return <span class="hint">{name || "–"}</span>
  return (
    <>
      {parts.map(({ kind, text }, i) => (
        <span key={i} class={`part adds-${kind}`}>
          {kind !== "text" && <span class="hint">{t.partKinds[kind]}{" "}</span>}
          <code>{quoted.has(kind) ? shownText(text) : text}</code>
        </span>
      ))}
    </>
  )
}

/** The frame as it went over the wire: its JSON indented, below the lines around it. */
const Envelope = ({ data }: { readonly data: string }) => {
  const t = useTexts().inspector
  const { data: inner, event } = dataOf(data)
  return (
    <div class="envelope">
      {event !== "" && <p class="hint">event: {event}</p>}
      <pre tabIndex={0} role="group" aria-label={t.frame}>{readable(inner).slice(0, shownCharacters)}</pre>
      {inner.length > shownCharacters && <p class="hint">{t.shownInPart(inner.length)}</p>}
    </div>
  )
}

/** One side's frames, 100 at a time. While the request runs, the last ones are followed until the reader turns back. */
const SideFrames = ({ leads, name, open, rounds, rows, truncated, wanted }: {
  readonly name: string
  readonly rows: ReadonlyArray<ReadRow>
  /** How many rounds they are of. */
  readonly rounds: number
  readonly open: boolean
  readonly truncated: boolean
  readonly wanted: Wanted | undefined
  /** It takes the focus when a time is shown. */
  readonly leads: boolean
}) => {
  const { common, inspector: t } = useTexts()
  const box = useRef<HTMLDivElement>(null)
  const [page, setPage] = useState<number>()
  const [unfolded, setUnfolded] = useState<number>()
  const follows = open && page === undefined
  const pages = Math.max(1, Math.ceil(rows.length / rowsAtATime))
  const shown = Math.min(page ?? (follows ? pages : 1), pages)
  const first = (shown - 1) * rowsAtATime
  const scroller = () => box.current?.querySelector(".table-box") ?? undefined
  const turn = (next: number | undefined) => {
    setPage(next)
    setUnfolded(undefined)
    scroller()?.scrollTo(0, 0)
  }
  const after = wanted === undefined ? -1 : rows.findIndex(({ at }) => at >= wanted.at - 0.05)
  const marked = wanted !== undefined && after < 0 ? rows.length - 1 : after
  useEffect(() => {
    if (wanted === undefined || rows.length === 0) return
    setPage(Math.floor(marked / rowsAtATime) + 1)
  }, [wanted])
  const answered = useRef<Wanted | undefined>(undefined)
  useEffect(() => {
    const row = box.current?.querySelector<HTMLElement>(`[data-row="${marked}"]`) ?? undefined
    const within = scroller()
    if (wanted === answered.current || row === undefined || within === undefined) return
    answered.current = wanted
    within.scrollTop = row.offsetTop - within.clientHeight / 3
    // The keyboard goes on where the eyes are.
    if (leads) row.querySelector("button")?.focus({ preventScroll: true })
  }, [wanted, shown])
  useEffect(() => {
    const within = scroller()
    if (follows && within !== undefined) within.scrollTop = within.scrollHeight
  }, [follows, rows.length])
  return (
    <div class="stack frames" ref={box}>
      <div class="actions between">
        <h3>{name}</h3>
        <span class="hint">{t.frameCount(rows.length)}{follows && rows.length > 0 ? ` · ${t.following}` : ""}</span>
      </div>
      <Table
        name={name}
        scroll
        compact
        columns={[
          { ...numbers(t.time)[0]!, width: "6.2rem" },
          ...rounds > 1 ? [{ name: t.roundShort, number: true, width: "4.6rem" }] : [],
          t.adds
        ]}
        rows={rows.length}
        empty={t.noFrames}
      >
        {rows.slice(first, first + rowsAtATime).map((row, i) => {
          const place = first + i
          const isUnfolded = unfolded === place
          return (
            <>
              <tr key={place} data-row={place} class={place === marked ? "marked" : ""}>
                <td class="number">{moment(row.at)}</td>
                {rounds > 1 && <td class="number">{row.round + 1}</td>}
                <td>
                  <button
                    type="button"
                    class="fold"
                    aria-expanded={isUnfolded}
                    onClick={() => setUnfolded(isUnfolded ? undefined : place)}
                  >
                    <Adds row={row} />
                  </button>
                </td>
              </tr>
              {isUnfolded && (
                <tr key={`${place} envelope`}>
                  <td colSpan={rounds > 1 ? 3 : 2}>
                    <Envelope data={row.data} />
                  </td>
                </tr>
              )}
            </>
          )
        })}
      </Table>
      {truncated && <p class="hint">{t.truncated}</p>}
      {pages > 1 && (
        <div class="pager">
          <button type="button" disabled={shown === 1} onClick={() => turn(1)}>{t.first}</button>
          <button type="button" disabled={shown === 1} onClick={() => turn(shown - 1)}>{common.previous}</button>
          <span>{common.shown(first + 1, Math.min(first + rowsAtATime, rows.length), rows.length)}</span>
          <button
            type="button"
            disabled={shown === pages}
            onClick={() => turn(open && shown + 1 === pages ? undefined : shown + 1)}
          >
            {common.next}
          </button>
          <button type="button" disabled={shown === pages} onClick={() => turn(open ? undefined : pages)}>
            {t.last}
          </button>
        </div>
      )}
    </div>
  )
}

export const Frames = ({ record, sides, wanted }: {
  readonly record: RequestRecord
  readonly sides: ReadSides
  readonly wanted: Wanted | undefined
}) => {
  const t = useTexts().inspector
  const ref = useRef<HTMLDivElement>(null)
  const open = record.outcome === "open"
  const { client, upstream } = sides
  useEffect(() => {
    if (wanted === undefined) return
    ref.current?.scrollIntoView({ block: "center" })
  }, [wanted])
  const side = { open, wanted }
  return (
    <Section name={t.frames}>
      <div class="halves fitted" ref={ref}>
        <SideFrames
          {...side}
          name={t.upstreamFrames}
          rows={upstream}
          leads={upstream.length > 0}
          rounds={record.upstream.length}
          truncated={record.upstream.some(({ truncated }) => truncated)}
        />
        <SideFrames
          {...side}
          name={t.clientFrames}
          rows={client}
          leads={upstream.length === 0}
          rounds={1}
          truncated={record.reply?.truncated ?? false}
        />
      </div>
    </Section>
  )
}
