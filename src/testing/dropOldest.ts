/** Drops the entries of a map that were put in first, until there are at most `max`. */
export const dropOldest = (map: Map<string, unknown>, max: number): void => {
  for (const oldest of map.keys()) {
    if (map.size <= max) return
    map.delete(oldest)
  }
}
