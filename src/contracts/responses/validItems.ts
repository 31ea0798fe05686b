/**
 * The items of a caller's own request as the contract accepts them: each call of a function has an output, and each output a call. Their ids are
 * within the limit. Items that are accepted stay as they are.
 */
import type { Conversation } from "../../domain/Conversation.ts"
import type { Json, JsonFields } from "../../domain/json.ts"
import { isFields } from "../../domain/replyExtras.ts"
import type { Limits } from "../shared/limits.ts"
import { missingResult, type Repairs, resultInWords } from "../shared/validHistory.ts"

/** The types of outputs by those of their calls. */
const outputs: ReadonlyMap<Json | undefined, string> = new Map([
  ["function_call", "function_call_output"],
  ["custom_tool_call", "custom_tool_call_output"]
])
const outputTypes: ReadonlySet<Json | undefined> = new Set(outputs.values())

/** What may have calls that no item shows: sealed summaries, and references to items. */
const hidesCalls = ({ type }: JsonFields): boolean =>
  type === "item_reference" || (typeof type === "string" && type.startsWith("compaction"))

const idOf = ({ call_id: id }: JsonFields): string | undefined => typeof id === "string" ? id : undefined

const inWords = ({ name, output }: JsonFields, isSecond: boolean): JsonFields => {
  const [heading] = resultInWords({ content: [], name: typeof name === "string" ? name : undefined }, isSecond)
  const said = { type: "input_text", text: heading?._tag === "Text" ? heading.text : "" }
  const content = Array.isArray(output) ? output as ReadonlyArray<Json> : [{ type: "input_text", text: output ?? "" }]
  return { type: "message", role: "user", content: [said, ...content] }
}

/** Items that the contract accepts, and what of them differs from the caller's. */
interface ValidItems {
  readonly items: ReadonlyArray<Json>
  readonly found: Repairs["found"]
}

/** The items of `input` that the contract accepts. */
export const validItems = (input: ReadonlyArray<Json>, { callIds }: Limits): ValidItems => {
  const found: Array<{ readonly turn: number; readonly what: string }> = []
  const answered = new Set(input.flatMap((item) => isFields(item) && !outputs.has(item["type"]) ? [idOf(item)] : []))
  const called = new Set<string | undefined>()
  const seen = new Set<string | undefined>()
  let isHidden = false
  const items = input.flatMap((item, turn): ReadonlyArray<Json> => {
    if (!isFields(item)) return [item]
    isHidden ||= hidesCalls(item)
    const id = idOf(item)
    if (id === undefined) return [item]
    const { type } = item
    const accepted = callIds.accepted(id)
    const sent = accepted === id ? item : { ...item, call_id: accepted }
    if (!outputTypes.has(type)) {
      called.add(id)
      const output = outputs.get(type)
      if (output === undefined || isHidden || answered.has(id)) return [sent]
      found.push({ turn, what: "call without a result" })
      return [sent, { type: output, call_id: accepted, output: missingResult }]
    }
    const isSecond = seen.has(id)
    seen.add(id)
    if (isHidden || (called.has(id) && !isSecond)) return [sent]
    found.push({ turn, what: isSecond ? "second result of a call" : "result without its call" })
    return [inWords(item, isSecond)]
  })
  return { items: items.length === input.length && items.every((item, i) => item === input[i]) ? input : items, found }
}

/** The caller's own items, unless a stored response has those before them. */
export const ownItems = ({ fields }: { readonly fields: JsonFields }): ReadonlyArray<Json> | undefined => {
  const { conversation = null, input, previous_response_id: previous = null } = fields
  return Array.isArray(input) && conversation === null && previous === null ? input as ReadonlyArray<Json> : undefined
}

/** What of a caller's own items differs at a server. */
export const itemRepairs = (
  { vendorFields }: Pick<Conversation, "vendorFields">,
  limits: Limits
): Repairs => {
  const items = vendorFields === undefined ? undefined : ownItems(vendorFields)
  const before = vendorFields?.continued?.items ?? 0
  const found = items === undefined ? [] : validItems(items, limits).found
  return {
    found: found.flatMap(({ turn, what }) => turn < before ? [] : [{ turn: turn - before, what }]),
    isEmpty: false
  }
}
