/**
 * All texts, for pages that load when they are shown: the English ones of such pages load with the first of them.
 */
import type { Texts } from "../texts/en.ts"
import { type AllTexts, later } from "../texts/later.ts"
import { texts, useTexts as useFirstTexts } from "./preferences.ts"

/** The texts of a language with those of later pages: made once a language. */
const whole = new WeakMap<object, AllTexts>()

const wholeOf = (first: Texts | AllTexts): AllTexts => {
  if ("inspector" in first) return first
  const known = whole.get(first) ?? { ...first, ...later }
  whole.set(first, known)
  return known
}

/** All texts of the chosen language. */
export const useTexts = (): AllTexts => wholeOf(useFirstTexts())

/** All texts of the chosen language, outside a view. */
export const allTexts = (): AllTexts => wholeOf(texts())
