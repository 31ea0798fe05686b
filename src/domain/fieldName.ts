/**
 * A field's place as callers and operators write it.
 */

/** Writes a path as `messages[0].content`: numbers are indexes, everything else is a key. */
export const fieldName = (path: ReadonlyArray<PropertyKey>): string =>
  path.reduce<string>(
    (name, key) => typeof key === "number" ? `${name}[${key}]` : name === "" ? String(key) : `${name}.${String(key)}`,
    ""
  )
