/**
 * Bodies and arguments as people read them, in bounded length.
 */
import { parsed } from "../../state/json.ts"

/** Longer texts are shown in part, so that the page stays fast. */
export const shownCharacters = 100_000

/** JSON with indentation; other text unchanged. */
export const readable = (text: string): string => {
  const value = text.length > shownCharacters ? undefined : parsed(text)
  return value === undefined ? text : JSON.stringify(value, null, 2)
}
