/** How a text is cut into the pieces of a reply. */

/** By word (at most 12 characters of it) with the blanks before it, by characters, by UTF-16 units (so also inside surrogate pairs), or not at all. */
export type Chunking =
  | { readonly _tag: "Words" }
  | { readonly _tag: "Characters"; readonly count: number }
  | { readonly _tag: "Units"; readonly count: number }
  | { readonly _tag: "Whole" }

const word = /\s*\S{1,12}|\s+$/gu

/** Cuts `text` into pieces whose concatenation is `text`; none for the empty string. */
export const cutText = (text: string, chunking: Chunking): ReadonlyArray<string> => {
  switch (chunking._tag) {
    case "Words":
      return text.match(word) ?? []
    case "Whole":
      return text === "" ? [] : [text]
    case "Characters":
    case "Units": {
      const units = chunking._tag === "Units" ? text.split("") : Array.from(text)
      const pieces: Array<string> = []
      for (let i = 0; i < units.length; i += chunking.count) pieces.push(units.slice(i, i + chunking.count).join(""))
      return pieces
    }
  }
}
