/**
 * Counts the text and bytes that an object retains: the characters of all strings and the bytes of all buffers that are reachable through
 * properties, elements and entries.
 */

/** Characters and bytes reachable from `root`, each object once. Values that only a closure holds are not counted. */
export const retainedBy = (root: unknown): number => {
  const seen = new Set<object>()
  const open: Array<unknown> = [root]
  let sum = 0
  while (open.length > 0) {
    const value = open.pop()
    if (typeof value === "string") {
      sum += value.length
    } else if (typeof value === "object" && value !== null && !seen.has(value)) {
      seen.add(value)
      if (ArrayBuffer.isView(value)) sum += value.byteLength
      else if (value instanceof Map || value instanceof Set) open.push(...value.keys(), ...value.values())
      else for (const key of Reflect.ownKeys(value)) open.push(Reflect.get(value, key))
    }
  }
  return sum
}
