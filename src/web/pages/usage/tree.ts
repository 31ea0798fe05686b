/**
 * The agents of a session as a tree.
 */
import type { UsageRow } from "./rows.ts"

/** The agents of a session in the order of a tree: each below the one that started it. */
export const treeOf = (
  rows: ReadonlyArray<UsageRow>
): ReadonlyArray<{ readonly row: UsageRow; readonly depth: number }> => {
  const names = new Set(rows.map(({ agent }) => agent))
  const isRoot = ({ agent, parent }: UsageRow) => parent === "none" || parent === agent || !names.has(parent)
  const placed = new Set<UsageRow>()
  const tree: Array<{ readonly row: UsageRow; readonly depth: number }> = []
  const add = (row: UsageRow, depth: number): void => {
    if (placed.has(row)) return
    placed.add(row)
    tree.push({ row, depth })
    for (const child of rows) if (!isRoot(child) && child.parent === row.agent) add(child, depth + 1)
  }
  for (const row of rows) if (isRoot(row)) add(row, 0)
  // Agents that name each other as parents.
  for (const row of rows) add(row, 0)
  return tree
}
