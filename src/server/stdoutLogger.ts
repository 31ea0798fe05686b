/**
 * Log lines as JSON on the standard output, all lines of one turn of the event loop in one write: a write for each line
 * costs more than all else of it.
 */
import * as Logger from "effect/Logger"

const lines: Array<string> = []

const write = () => {
  process.stdout.write(`${lines.join("\n")}\n`)
  lines.length = 0
}

/** One JSON object a line. */
export const stdoutLogger: Logger.Logger<unknown, void> = Logger.map(Logger.formatJson, (line) => {
  if (lines.push(line) === 1) setImmediate(write)
})
