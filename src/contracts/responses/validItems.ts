/**
 * The items of a caller's own request as the contract accepts them: each call of a function has an output, and each output a call. Their ids are
 * within the limit. Items that are accepted stay as they are.
 */
import type { Conversation } from "../../domain/Conversation.ts"
import type { Json, JsonFields } from "../../domain/json.ts"
import { isFields } from "../../domain/replyExtras.ts"
import type { Limits } from "../shared/limits.ts"
import { CallIds, missingResult, type Repairs, resultInWords } from "../shared/validHistory.ts"

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

/** A call in `input`. */
interface Call {
  readonly id: string
  readonly turn: number
  isAnswered: boolean
}

/** The items of `input` that the contract accepts. */
export const validItems = (input: ReadonlyArray<Json>, limits: Limits): ValidItems => {
  const found: Array<Repairs["found"][number]> = []
  const ids = new CallIds(limits)
  const calls = new Map<string, Call>()
  const byItem = new Map<number, Call>()
  let isHidden = false
  const sent = input.map((item, turn): Json => {
    if (!isFields(item)) return item
    isHidden ||= hidesCalls(item)
    const own = idOf(item)
    if (own === undefined) return item
    const withId = (id: string) => id === own ? item : { ...item, call_id: id }
    const call = calls.get(own)
    if (typeof item["type"] === "string" && item["type"].endsWith("_output")) {
      const isSecond = call?.isAnswered === true
      if (call !== undefined) call.isAnswered = true
      if (isHidden || !outputTypes.has(item["type"]) || (call !== undefined && !isSecond)) {
        return withId(call?.id ?? own)
      }
      found.push({ turn, what: isSecond ? "second result of a call" : "result without its call" })
      return inWords(item, isSecond)
    }
    const next = { id: ids.of(own), turn, isAnswered: false }
    calls.set(own, next)
    byItem.set(turn, next)
    return withId(next.id)
  })
  const items = sent.flatMap((item, turn): ReadonlyArray<Json> => {
    const call = byItem.get(turn)
    const output = isFields(item) ? outputs.get(item["type"]) : undefined
    if (call === undefined || output === undefined || call.isAnswered || isHidden) return [item]
    found.push({ turn, what: "call without a result" })
    return [item, { type: output, call_id: call.id, output: missingResult }]
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
    isEmpty: false,
    unread: undefined
  }
}
