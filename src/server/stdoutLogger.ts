/**
 * Log lines as JSON on the standard output, all lines of one turn of the event loop in one write: a write for each line
 * costs more than all else of it.
 */
import * as Formatter from "effect/Formatter"
import * as Logger from "effect/Logger"

const lines: Array<string> = []

const write = () => {
  process.stdout.write(`${lines.join("\n")}\n`)
  lines.length = 0
}

const isPlain = (value: unknown): boolean => typeof value !== "bigint" && (typeof value !== "object" || value === null)

/** A line as `Logger.formatJson` writes it. Only objects need its care for secrets and cycles, which takes most of its time. */
export const jsonLine: Logger.Logger<unknown, string> = Logger.map(
  Logger.formatStructured,
  (entry) =>
    isPlain(entry.message) && Object.values(entry.annotations).every(isPlain)
      ? JSON.stringify(entry)
      : Formatter.formatJson(entry)
)

/** One JSON object a line. */
export const stdoutLogger: Logger.Logger<unknown, void> = Logger.map(jsonLine, (line) => {
  if (lines.push(line) === 1) setImmediate(write)
})
