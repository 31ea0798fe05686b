/**
 * Parses server-sent events, for tests of frames without an SDK.
 */

/** One event: its data, and its name if it has one. */
export interface SseFrame {
  readonly event: string | undefined
  readonly data: string
}

/** Splits a stream's text into its events, without comments. Throws if the text does not end after a complete event. */
export const parseFrames = (text: string): ReadonlyArray<SseFrame> => {
  if (text !== "" && !text.endsWith("\n\n")) throw new Error("the stream does not end with a blank line")
  return text.split("\n\n").slice(0, -1).flatMap((frame) => {
    let event: string | undefined
    const data: Array<string> = []
    for (const line of frame.split("\n")) {
      if (line.startsWith("event: ")) event = line.slice(7)
      else if (line.startsWith("data: ")) data.push(line.slice(6))
      else if (!line.startsWith(":")) throw new Error(`not a line of an event: ${JSON.stringify(line)}`)
    }
    return data.length === 0 ? [] : [{ event, data: data.join("\n") }]
  })
}
