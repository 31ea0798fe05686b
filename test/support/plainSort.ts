/** The order of a list by a value, as tests expect it. */
import type { SortValue } from "../../src/admin/contract.ts"

export const orders = ["asc", "desc"] as const

/** A plain sort by insertion: unknown values last, and equal ones as they were. */
export const plainly = <Item>(
  items: ReadonlyArray<Item>,
  valueOf: (item: Item) => SortValue,
  order: (typeof orders)[number]
): ReadonlyArray<Item> => {
  const sorted: Array<Item> = []
  const isBefore = (a: Item, b: Item): boolean => {
    const [one, other] = [valueOf(a) ?? undefined, valueOf(b) ?? undefined]
    if (one === undefined || other === undefined) return one !== undefined && other === undefined
    return order === "asc" ? one < other : one > other
  }
  for (const item of items) {
    const place = sorted.findIndex((each) => isBefore(item, each))
    sorted.splice(place === -1 ? sorted.length : place, 0, item)
  }
  return sorted
}
