/**
 * How a request asks for a compaction: by its last item, or once its input has so many tokens.
 */
import type { ResponseRequest } from "../../../contracts/responses/schema.ts"
import type { PlacedItem } from "../../../contracts/responses/turns.ts"
import type { Faults } from "../../../contracts/shared/Faults.ts"
import { type Cooperative, eachCooperatively, type Slice } from "../../../domain/stream/cooperative.ts"

/** `now`: the compaction is the whole reply. A number of tokens: it comes before the reply once the input has so many. */
export type AskedCompaction = "now" | number | undefined

/** What a request asks for. An item that asks for it must be the last one; those of earlier requests have been answered. */
export function* askedCompaction(
  { context_management: management }: ResponseRequest,
  items: ReadonlyArray<PlacedItem>,
  faults: Faults,
  slice: Slice
): Cooperative<AskedCompaction> {
  let least: number | undefined
  let isNow = false
  for (const [i, { compact_threshold: threshold, type }] of (management ?? []).entries()) {
    if (type !== "compaction" || threshold === undefined || threshold === null) {
      faults.noteIgnored(`context_management[${i}]`)
    } else least = Math.min(least ?? threshold, threshold)
  }
  yield* eachCooperatively(items, ({ field, item }, i) => {
    if (item.type !== "compaction_trigger") return
    if (i === items.length - 1) isNow = true
    else if (field !== "previous_response_id") faults.at(field, "must be the last item")
  }, slice)
  if (isNow && items.length === 1) faults.at("input", "has nothing to compact")
  return isNow ? "now" : least
}
