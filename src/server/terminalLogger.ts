/**
 * Log lines for people: a request is one short line, everything else is as the library shows it.
 */
import * as Logger from "effect/Logger"
import * as References from "effect/References"

type Fields = Readonly<Record<string, unknown>>

const clockTime = (date: Date): string =>
  [date.getHours(), date.getMinutes(), date.getSeconds()].map((part) => String(part).padStart(2, "0")).join(":")

const causeWords = (cause: unknown): ReadonlyArray<string> =>
  typeof cause === "object" && cause !== null ? Object.values(cause).map(String) : []

/**
 * A request as one line: `20:34:07 chat upstream-chat 200 stop 4→39 tokens 61 ms`. One that failed has its cause and its id
 * at the end. Words of callers are shown without what a terminal would obey.
 */
export const requestLine = (date: Date, fields: Fields): string => {
  const { cause, duration_ms, input_tokens, model, outcome, output_tokens, path, requested_model, status, style } =
    fields
  const failed = typeof status !== "number" || status >= 400 || cause !== undefined
  const words = [
    clockTime(date),
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

/** For a standard output that is a terminal. */
export const terminalLogger: Logger.Logger<unknown, void> = Logger.make((options) => {
  const { date, fiber, message } = options
  if (Array.isArray(message) ? message[0] !== "request" : message !== "request") return pretty.log(options)
  process.stdout.write(`${requestLine(date, fiber.getRef(References.CurrentLogAnnotations))}\n`)
})
