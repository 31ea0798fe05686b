/**
 * Loggers of the node service: JSON lines for machines, short lines for a terminal.
 */
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import type * as LogLevel from "effect/LogLevel"
import * as References from "effect/References"
import { workerVariable } from "./workers/messages.ts"

let waiting = ""

const write = () => {
  if (waiting !== "") process.stdout.write(waiting)
  waiting = ""
}

/** A pipe writes up to this many bytes together (`PIPE_BUF`); longer writes of several processes may interleave. */
const pieceBytes = 4096
const isWorker = process.env[workerVariable] !== undefined

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

/**
 * Writes JSON lines to the standard output. All lines of one turn of the event loop go out in one write, the most
 * expensive part of logging. Workers share the output, so a write of several lines has at most `PIPE_BUF` bytes.
 */
export const stdoutLogger: Logger.Logger<unknown, void> = Logger.map(jsonLine, (line) => {
  if (isWorker && waiting !== "" && Buffer.byteLength(waiting) + Buffer.byteLength(line) >= pieceBytes) write()
  if (waiting === "") setImmediate(write)
  waiting += `${line}\n`
})

type Fields = Readonly<Record<string, unknown>>

const clockTime = (date: Date): string =>
  [date.getHours(), date.getMinutes(), date.getSeconds()].map((part) => String(part).padStart(2, "0")).join(":")

const causeWords = (cause: unknown): ReadonlyArray<string> =>
  typeof cause === "object" && cause !== null ? Object.values(cause).map(String) : []

/**
 * A request as one line: `20:34:07 chat upstream-chat 200 stop 4→39 tokens 61 ms`. A failed one ends with its cause and
 * id. A worker adds its node. Control characters in caller text become blanks.
 */
export const requestLine = (date: Date, fields: Fields): string => {
  const { cause, duration_ms, input_tokens, model, outcome, output_tokens, path, requested_model, status, style } =
    fields
  const failed = typeof status !== "number" || status >= 400 || cause !== undefined
  const words = [
    clockTime(date),
    isWorker ? fields["node"] : undefined,
    style ?? path,
    model ?? requested_model,
    status,
    outcome,
    ...(input_tokens === undefined ? [] : [`${String(input_tokens)}→${String(output_tokens)} tokens`]),
    `${String(duration_ms)} ms`,
    ...causeWords(cause),
    ...(failed ? [fields["request_id"]] : [])
  ]
  return words.filter((word) => word !== undefined).map(String).join(" ").replaceAll(/\p{Cc}/gu, " ")
}

const pretty = Logger.consolePretty()

/** Writes requests as short lines and everything else with the library's formatter, for a terminal. */
export const terminalLogger: Logger.Logger<unknown, void> = Logger.make((options) => {
  const { date, fiber, message } = options
  if (Array.isArray(message) ? message[0] !== "request" : message !== "request") return pretty.log(options)
  process.stdout.write(`${requestLine(date, fiber.getRef(References.CurrentLogAnnotations))}\n`)
})

export const isTerminal = process.stdout.isTTY === true

/** Short lines on a terminal, else JSON lines. */
export const layerLogging = (level: LogLevel.LogLevel) =>
  Layer.mergeAll(
    Logger.layer([isTerminal ? terminalLogger : stdoutLogger]),
    Layer.succeed(References.MinimumLogLevel, level)
  )
