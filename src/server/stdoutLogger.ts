/**
 * Log lines as JSON on the standard output. All lines of one turn of the event loop go out in one write: a write for each
 * line costs more than everything else about it.
 */
import * as Logger from "effect/Logger"
import * as References from "effect/References"

const lines: Array<string> = []

const write = () => {
  process.stdout.write(`${lines.join("\n")}\n`)
  lines.length = 0
}

const isPlain = (value: unknown): boolean => {
  switch (typeof value) {
    case "string":
    case "number":
    case "boolean":
    case "undefined":
      return true
    default:
      return value === null
  }
}

const isPlainRecord = (record: Readonly<Record<string, unknown>>): boolean => {
  for (const name in record) if (!isPlain(record[name])) return false
  return true
}

const noSpans = {}

/**
 * A line as `Logger.formatJson` writes it. A line of plain values, as each request has one, needs none of the library's care
 * for secrets, cycles and other objects, which takes half of the line's time.
 */
export const jsonLine: Logger.Logger<unknown, string> = Logger.make((entry) => {
  const { cause, date, fiber, logLevel, message } = entry
  const annotations = fiber.getRef(References.CurrentLogAnnotations)
  const [text, ...others] = Array.isArray(message) ? message as ReadonlyArray<unknown> : [message]
  const isSimple = typeof text === "string" && others.length === 0 && cause.reasons.length === 0 &&
    fiber.getRef(References.CurrentLogSpans).length === 0 && isPlainRecord(annotations)
  if (!isSimple) return Logger.formatJson.log(entry)
  return JSON.stringify({
    message: text,
    level: logLevel.toUpperCase(),
    timestamp: date.toISOString(),
    annotations,
    spans: noSpans,
    fiberId: `#${fiber.id}`
  })
})

/** One JSON object a line. */
export const stdoutLogger: Logger.Logger<unknown, void> = Logger.map(jsonLine, (line) => {
  if (lines.push(line) === 1) setImmediate(write)
})
