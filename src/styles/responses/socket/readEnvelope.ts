/** What a connection reads of a message before its turn begins. */
import { parseJson } from "../../../contracts/shared/json.ts"
import { type Cooperative, pieceChars, Slice } from "../../../domain/stream/cooperative.ts"
import { type JsonBounds, type Measured, measureJson } from "../../../domain/stream/measureJson.ts"
import { TopLevel } from "../../../domain/stream/TopLevel.ts"
import { envelopeFields } from "./Turn.ts"

export const isAbsent = (value: unknown): value is null | undefined => value === undefined || value === null

/** True for the name of a lane. */
export const isStreamId = (value: unknown): value is string =>
  typeof value === "string" && /^[\w.-]{1,256}$/.test(value)

export const isChoice = (value: unknown): boolean => isAbsent(value) || typeof value === "boolean"

/** What is read of a message before its turn begins. */
export interface ReadEnvelope {
  readonly measured: Measured
  /** The fields of its envelope; absent those that are long or no JSON. */
  readonly envelope: Partial<Record<typeof envelopeFields[number], unknown>>
}

/** Measures a message and reads its envelope, without the values that its turn parses later. */
export function* readEnvelope(message: string, bounds: JsonBounds): Cooperative<ReadEnvelope> {
  const measured = yield* measureJson(message, bounds)
  const envelope: Record<string, unknown> = {}
  if (measured.exceeded !== undefined) return { measured, envelope }
  const scan = new TopLevel(undefined, envelopeFields)
  const slice = new Slice()
  for (let from = 0; from < message.length; from += pieceChars) {
    scan.push(message.slice(from, from + pieceChars), [])
    if (slice.add(1, pieceChars)) yield slice.end()
  }
  for (const [name, text] of scan.kept) envelope[name] = parseJson(text)
  return { measured, envelope }
}
