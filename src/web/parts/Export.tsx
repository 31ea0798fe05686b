/**
 * Saves what a list shows as a file: page by page, with a bar of progress, and at most 10,000 rows.
 */
import { useEffect, useRef, useState } from "preact/hooks"
import { report } from "../state/actions.ts"
import { failureText } from "../state/failure.ts"
import type { Query } from "../state/route.ts"
import { useTexts } from "../state/texts.ts"

/** The most rows of a file. */
export const mostExported = 10_000

/** Some rows of a list. */
export interface ExportedPage {
  readonly lines: ReadonlyArray<string>
  /** How many rows the whole list has, where that is known. */
  readonly total: number | undefined
}

/** The longest name of a file, which systems limit. */
const longestName = 120

/** A file's name with what the list is narrowed by: `requests-outcome-failed.jsonl`. */
export const fileName = (list: string, filter: Query, ending: string): string => {
  const parts = Object.entries(filter).filter(([, value]) => value !== "").flat()
  const name = [list, ...parts].join("-").replaceAll(/[^\p{L}\p{N}._-]+/gu, "-").replaceAll(/-{2,}/g, "-")
  return `${name.slice(0, longestName).replace(/-+$/, "")}.${ending}`
}

const types = { jsonl: "application/x-ndjson", csv: "text/csv" } as const

const save = (file: string, type: string, lines: ReadonlyArray<string>): void => {
  const link = document.createElement("a")
  link.href = URL.createObjectURL(new Blob([...lines], { type }))
  link.download = file
  link.click()
  URL.revokeObjectURL(link.href)
}

export const Export = ({ ending, filter, head = "", list, read }: {
  /** What the list is of, for the file's name. */
  readonly list: string
  readonly filter: Query
  readonly ending: keyof typeof types
  /** The line before the rows. */
  readonly head?: string
  readonly read: (signal: AbortSignal) => AsyncIterable<ExportedPage>
}) => {
  const t = useTexts().exports
  const [progress, setProgress] = useState<{ readonly done: number; readonly total: number | undefined }>()
  const stopping = useRef<AbortController>(undefined)
  useEffect(() => () => stopping.current?.abort(), [])
  const start = async () => {
    const { signal } = stopping.current = new AbortController()
    const lines: Array<string> = []
    setProgress({ done: 0, total: undefined })
    try {
      for await (const page of read(signal)) {
        lines.push(...page.lines.slice(0, mostExported - lines.length))
        setProgress({ done: lines.length, total: page.total })
        if (lines.length === mostExported) break
      }
      if (signal.aborted) return
      const file = fileName(list, filter, ending)
      save(file, types[ending], [head, ...lines])
      report(lines.length === mostExported ? t.cut(lines.length, file) : t.done(lines.length, file))
    } catch (reason) {
      if (!signal.aborted) report(failureText(reason), true)
    } finally {
      setProgress(undefined)
    }
  }
  if (progress === undefined) return <button type="button" onClick={() => void start()}>{t[ending]}</button>
  const { done, total } = progress
  return (
    <span class="progress">
      <progress
        aria-label={t.running}
        {...total === undefined ? {} : { max: Math.max(1, Math.min(total, mostExported)), value: done }}
      />
      <span class="hint">{t.rows(done)}</span>
      <button type="button" onClick={() => stopping.current?.abort()}>{t.stop}</button>
    </span>
  )
}
