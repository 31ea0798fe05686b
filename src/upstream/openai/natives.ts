/** The vendor fields of a conversation's parts that the server gets. */
import type { JsonFields } from "../../domain/json.ts"
import { mergeFields, type Native } from "../../domain/Native.ts"

/** Tells whether a field, or an element of a kind, is sent. */
export type Sends = (name: string) => boolean

/** An element of the conversation with its native. */
interface Said {
  readonly native?: Native | undefined
}

/** The fields of the Responses contract that chat completions have by the same names. */
const shared: ReadonlySet<string> = new Set(["prompt_cache_breakpoint"])

const isSent = ({ family, fields, whole }: Native, name: string, sends: Sends): boolean =>
  whole === true
    ? family === "openai" && typeof fields["type"] === "string" && sends(fields["type"])
    : (family === "openai" || (family === "responses" && shared.has(name))) && sends(name)

/** True if the element has something for the server. */
export const hasNative = ({ native }: Said, sends: Sends): boolean =>
  native !== undefined && Object.keys(native.fields).some((name) => isSent(native, name, sends))

/** The element in the server's form, with the fields of its native that are sent; of another kind, the whole native. */
export const withNativeOf = <A extends JsonFields>({ native }: Said, element: A, sends: Sends): A | JsonFields => {
  if (native === undefined) return element
  const fields = Object.entries(native.fields).filter(([name]) => isSent(native, name, sends))
  if (fields.length === 0) return element
  return native.whole === true ? native.fields : mergeFields(element, Object.fromEntries(fields))
}
