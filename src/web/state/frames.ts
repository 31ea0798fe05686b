/**
 * Frames: events with their lines as sent, or whole bodies.
 */

/** The data of a frame: the `data` lines of an event, or the whole body. */
export const dataOf = (frame: string): { readonly isEvent: boolean; readonly event: string; readonly data: string } => {
  const lines = frame.split(/\r\n|\r|\n/)
  if (!lines.some((line) => /^(?:data|event|id|retry)?:/.test(line))) {
    return { isEvent: false, event: "", data: frame.trim() }
  }
  const field = (name: string) =>
    lines.filter((line) => line.startsWith(`${name}:`)).map((line) => line.slice(name.length + 1).replace(/^ /, ""))
  return { isEvent: true, event: field("event").at(-1) ?? "", data: field("data").join("\n") }
}
