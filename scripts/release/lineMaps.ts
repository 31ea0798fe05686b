// Source maps with lines only. They let a stack trace name the source file and line, at a twelfth of the size of maps with columns, and
// do not contain the sources.
import { SourceMap, type SourceMapPayload, type SourceMapping } from "node:module"

const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

/** Encodes a number as a Base64 VLQ: the sign in the lowest bit, five bits a digit. */
const vlq = (value: number): string => {
  let rest = value < 0 ? -value << 1 | 1 : value << 1
  let text = ""
  do {
    const more = rest >>> 5
    text += digits[rest & 31 | (more > 0 ? 32 : 0)]
    rest = more
  } while (rest > 0)
  return text
}

/** The map of a module's code, with one mapping for each line whose source is `kept`. */
export const lineMap = (
  code: string,
  map: SourceMapPayload,
  kept: (source: string) => boolean
): SourceMapPayload => {
  const full = new SourceMap(map)
  const sources = map.sources.filter(kept)
  const places = new Map(sources.map((source, place) => [source, place]))
  let lastPlace = 0
  let lastLine = 0
  const mappings = code.split("\n").map((text, line) => {
    const column = text.search(/\S/)
    const entry: Partial<SourceMapping> = column === -1 ? {} : full.findEntry(line, column)
    const { originalLine, originalSource = "" } = entry
    const place = places.get(originalSource)
    if (place === undefined || originalLine === undefined) return ""
    const mapping = `A${vlq(place - lastPlace)}${vlq(originalLine - lastLine)}A`
    lastPlace = place
    lastLine = originalLine
    return mapping
  })
  return { ...map, sources, sourcesContent: [], names: [], mappings: mappings.join(";") }
}
