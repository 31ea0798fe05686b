/** A thread as a text that a turn leaves to the next one, at whatever node that is answered. */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { mostSums, type Thread } from "../domain/warmth.ts"

const Text = Schema.fromJsonString(Schema.Struct({
  upstream: Schema.String,
  model: Schema.String,
  account: Schema.String,
  at: Schema.Finite,
  lifetime: Schema.Finite,
  tokens: Schema.Finite,
  bytes: Schema.Finite,
  tools: Schema.Int,
  hasSystem: Schema.Boolean,
  opening: Schema.Int,
  elements: Schema.Int,
  step: Schema.Int,
  sums: Schema.Uint8ArrayFromBase64Url
}))

const encode = Schema.encodeSync(Text)
const decode = Schema.decodeUnknownOption(Text)

/** Writes a thread. `behind` is how far its clock is behind Unix time, in milliseconds. */
export const threadText = (thread: Thread, behind: number): string => {
  const { buffer, byteLength, byteOffset } = thread.sums
  return encode({ ...thread, at: thread.at + behind, sums: new Uint8Array(buffer, byteOffset, byteLength) })
}

/** Reads a thread; `undefined` for a text of another form. */
export const readThread = (text: string, behind: number): Thread | undefined => {
  const found = Option.getOrUndefined(decode(text))
  if (found === undefined || found.sums.length % 4 !== 0 || found.sums.length > 4 * mostSums) return undefined
  // The bytes may begin anywhere in their buffer.
  return { ...found, at: found.at - behind, sums: new Uint32Array(new Uint8Array(found.sums).buffer) }
}
