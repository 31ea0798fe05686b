/**
 * Ids of responses and their items. An item's id contains its response's id, so that references need no index.
 */

const pattern = /^[a-z]+_([0-9a-f]{32})_(?:in)?\d+$/

/** The seed of one response's ids: 32 hex digits. */
export const responseSeed = (uuid: string): string => uuid.replaceAll("-", "").toLowerCase()

export const responseId = (seed: string): string => `resp_${seed}`

/** The seed of a response's id. */
export const seedOf = (id: string): string => id.slice("resp_".length)

const prefixes = {
  message: "msg",
  reasoning: "rs",
  function_call: "fc",
  function_call_output: "fco",
  custom_tool_call: "ctc",
  custom_tool_call_output: "ctco",
  image_generation_call: "ig",
  compaction: "cmp"
} as const

/** Types of items with their own id prefix. */
export type ItemType = keyof typeof prefixes

/** Id of a response's output item. */
export const outputItemId = (seed: string, type: ItemType, index: number): string =>
  `${prefixes[type]}_${seed}_${index}`

const prefixOf = (type: string): string => Object.hasOwn(prefixes, type) ? prefixes[type as ItemType] : "item"

/** Id of an input item that the caller sent without one. */
export const inputItemId = (seed: string, type: string, index: number): string => `${prefixOf(type)}_${seed}_in${index}`

/** The response that an item belongs to; `undefined` for an id that the gateway did not make. */
export const responseOfItem = (id: string): string | undefined => {
  const seed = pattern.exec(id)?.[1]
  return seed === undefined ? undefined : responseId(seed)
}
