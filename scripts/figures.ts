// Writes the figures of a run of everything into docs/contributing/tests.md: `./scripts/test --record`.
import { readFileSync, writeFileSync } from "node:fs"
import { availableParallelism } from "node:os"
import path from "node:path"

/** What a file of tests took, in seconds. */
export interface FileFigures {
  readonly file: string
  /** User and system time, with its imports and the processes that it starts. */
  readonly cpu: number
  readonly wall: number
}

/** What a run took. Times are in seconds. */
export interface Figures {
  /** Whether it was a run with `--all`. */
  readonly isWhole: boolean
  readonly tests: number
  /** User and system time, of the checks too. */
  readonly cpu: number
  readonly wall: number
  /** The dearest files, the dearest first. */
  readonly files: ReadonlyArray<FileFigures>
}

const page = path.join(import.meta.dirname, "../docs/contributing/tests.md")

const minutes = (seconds: number): string => (seconds / 60).toFixed(1)

/** The text of a run's figures, between the comments that hold its place. */
export const figuresText = ({ cpu, files, tests, wall }: Figures, cores: number): string =>
  [
    `${tests.toLocaleString("en-US")} tests: ${minutes(cpu)} minutes of CPU time, ${
      minutes(wall)
    } minutes on ${cores} cores.`,
    `The dearest files, in seconds of CPU time: ${
      files.map(({ cpu, file }) => `\`${file.replace(/^test\/|\.test\.tsx?$/g, "")}\` ${cpu.toFixed(0)}`).join(", ")
    }.`
  ].join("\n")

/** A text with the figures of a run in their place. Throws if the text has no place for them. */
export const withFigures = (text: string, figures: Figures, cores: number): string => {
  const name = figures.isWhole ? "--all" : "daily"
  const [begin, end] = [`<!-- written by a run: ${name} -->\n`, "<!-- end -->"]
  const from = text.indexOf(begin)
  const to = text.indexOf(end, from)
  if (from < 0 || to < 0) throw new Error(`no place for the figures of a run: ${begin}`)
  return `${text.slice(0, from + begin.length)}${figuresText(figures, cores)}\n${text.slice(to)}`
}

/** Writes the figures of a run. */
export const writeFigures = (figures: Figures): void =>
  writeFileSync(page, withFigures(readFileSync(page, "utf8"), figures, availableParallelism()))
