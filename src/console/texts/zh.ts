/**
 * The console's texts in Chinese.
 */
import type { Texts } from "./en.ts"
import { en } from "./en.ts"

export const zh: Texts = en
