/**
 * The vendor fields of a request, for servers that speak this contract too: what a driver cannot know from the conversation alone.
 */
import type { Part } from "../../domain/Conversation.ts"
import { reworded } from "../../domain/families/messages.ts"
import type { Json, JsonFields } from "../../domain/json.ts"
import { mergeFields, type Native } from "../../domain/Native.ts"
import type { MessagesRequest } from "./Api.ts"

const family = "messages"

/** A single text in a list; a text without it is a string. */
export const asList: Native = { family, fields: {} }

/** A turn of the message before it. */
export const continued: Native = { family, fields: {}, continues: true }

/** A part whose words the part before it has too. */
const absorbed: Native = { family, fields: {}, whole: true }

/** A system message among the messages. */
export const ownSystem = (native: Native | undefined): Native => ({
  family,
  fields: { ...native?.fields, role: "system" }
})

/** A block or tool in the caller's words: as the body has it, or of what the gateway reads and what it does not. */
export const wholeOf = (element: object, native: Native | undefined): Native => {
  if (native?.whole === true) return native
  const fields = element as unknown as JsonFields
  return { family, fields: native === undefined ? fields : mergeFields(fields, native.fields), whole: true }
}

/** The parts that a block was decoded to, the first of which has the caller's words of it. */
export const inWords = <A extends Part>(parts: ReadonlyArray<A>, native: Native): ReadonlyArray<A> =>
  parts.map((part, i) => ({ ...part, native: i === 0 ? native : absorbed }))

/** The caller's words of the whole request. */
export const ownRequest = (
  request: Pick<typeof MessagesRequest.Type, typeof reworded[number]>,
  native: Native | undefined
): Native => {
  let fields: { [name: string]: Json } | undefined
  for (const name of reworded) {
    const value = request[name]
    if (value === undefined || value === null) continue
    fields ??= {}
    fields[name] = value as unknown as Json
  }
  if (fields === undefined) return native ?? asList
  return { family, fields: native === undefined ? fields : mergeFields(fields, native.fields) }
}
