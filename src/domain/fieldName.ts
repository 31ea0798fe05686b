/**
 * A field's place as callers and operators write it.
 */

/** Characters of a name that are shown; who wrote a longer one knows it by these. */
const longestShown = 80

/** A name that somebody chose, as far as it is shown. */
export const shownName = (name: string): string =>
  name.length > longestShown ? `${name.slice(0, longestShown).toWellFormed()}…` : name

/** Writes a path as `messages[0].content`: numbers are indexes, everything else is a key. */
export const fieldName = (path: ReadonlyArray<PropertyKey>): string =>
  path.reduce<string>(
    (name, key) =>
      typeof key === "number"
        ? `${name}[${key}]`
        : name === ""
        ? shownName(String(key))
        : `${name}.${shownName(String(key))}`,
    ""
  )
