/**
 * The items of a conversation with compactions: what a compaction becomes, and what stays of the items before it.
 */
import { isOtherItem, type Item, loosePartTypes, otherItem } from "../../../contracts/responses/items.ts"
import type { PlacedItem } from "../../../contracts/responses/turns.ts"
import { unreadable } from "../../../contracts/responses/vendorItems.ts"
import type { ContentPart, MessageContent } from "../../../contracts/shared/chatFamily.ts"
import { omitted } from "../../../contracts/shared/conversation.ts"
import type { Faults } from "../../../contracts/shared/Faults.ts"
import { type Cooperative, mapCooperatively, Slice } from "../../../domain/stream/cooperative.ts"
import { cutTo, summaryMessage } from "./prompt.ts"
import { isGatewaySeal } from "./seal.ts"

/** The summary in a seal; `undefined` if this gateway cannot read it. */
export type ReadsSummary = (seal: string) => string | undefined

/** Characters of all kept messages of the user together. */
const mostKept = 80_000

/** A message of which less would stay is left out. */
const leastKept = 100

const textTypes: ReadonlySet<string> = new Set(["input_text", "output_text", "text"])

const partText = (part: ContentPart): string => textTypes.has(part.type) ? part.text ?? "" : omitted(part.type).text

const contentText = (content: MessageContent): string =>
  typeof content === "string" ? content : content.map(partText).join("\n")

/** True for a message of the user, also one that is a content part alone. */
const isOfUser = (item: Item): boolean =>
  !isOtherItem(item) && ("role" in item ? item.role === "user" : loosePartTypes.has(item.type))

/** The text of such a message, with notes in the places of pictures and files. */
const userText = (item: Item): string => {
  if (isOtherItem(item)) return ""
  if ("role" in item) return contentText(item.content)
  return loosePartTypes.has(item.type) ? partText(item as ContentPart) : ""
}

/** True for a message of a system or a developer. */
const isInstruction = (item: Item): boolean =>
  !isOtherItem(item) && "role" in item && (item.role === "system" || item.role === "developer")

const message = (role: "user" | "developer", text: string): Item => ({
  type: "message",
  role,
  content: [{ type: "input_text", text }]
})

/**
 * What stays of items after a compaction, in their order: instructions, and the texts of the user's messages, newest first up to
 * `mostKept`.
 */
function* keptItems(items: ReadonlyArray<PlacedItem>, slice: Slice): Cooperative<ReadonlyArray<PlacedItem>> {
  const kept: Array<PlacedItem> = []
  let room = mostKept
  for (const placed of items.toReversed()) {
    if (slice.add(1)) yield slice.end()
    const { field, item } = placed
    if (isInstruction(item)) kept.push(placed)
    if (room < leastKept || !isOfUser(item)) continue
    const text = cutTo(userText(item), room)
    room -= text.length
    if (text !== "") kept.push({ field, item: message("user", text), sent: undefined })
  }
  return kept.reverse()
}

/** The texts of the user's messages that a compacted conversation begins with, in their order. */
export function* keptTexts(items: ReadonlyArray<Item>): Cooperative<ReadonlyArray<string>> {
  const slice = new Slice()
  const placed = yield* mapCooperatively(slice, items, (item) => ({ item, field: "input", sent: undefined }))
  return (yield* keptItems(placed, slice)).flatMap(({ item }) => isOfUser(item) ? [userText(item)] : [])
}

/** A compaction as an item of a request. */
export const compactionItem = (seal: string): Item => otherItem({ type: "compaction", encrypted_content: seal })

const isCompaction = (item: Item): boolean =>
  isOtherItem(item) && (item.type === "compaction" || item.type === "compaction_summary")

const isMessage = (item: Item): boolean => isOfUser(item) || isInstruction(item) || isCompaction(item)

/**
 * The items for every target: a compaction of a gateway is a message with its summary, or a message that it cannot be read. Where a client
 * has kept what was compacted, the newest summary takes its place.
 */
export function* openedItems(
  items: ReadonlyArray<PlacedItem>,
  read: ReadsSummary | undefined,
  faults: Pick<Faults, "noteIgnored">,
  slice: Slice
): Cooperative<ReadonlyArray<PlacedItem>> {
  let newest: number | undefined
  const opened: Array<PlacedItem> = []
  for (const placed of items) {
    const { field, item } = placed
    const seal = isOtherItem(item) && isCompaction(item) ? item["encrypted_content"] : undefined
    const isOwn = typeof seal === "string" && isGatewaySeal(seal)
    if (slice.add(1, isOwn ? seal.length : 0)) yield slice.end()
    if (!isOwn) {
      opened.push(placed)
      continue
    }
    const summary = read?.(seal)
    if (summary === undefined) faults.noteIgnored(field)
    else newest = opened.length
    opened.push({
      field,
      item: summary === undefined ? message("developer", unreadable) : message("user", summaryMessage(summary)),
      sent: undefined
    })
  }
  if (newest === undefined || items.slice(0, newest).every(({ item }) => isMessage(item))) return opened
  return (yield* keptItems(items.slice(0, newest), slice)).concat(opened.slice(newest))
}
