/**
 * English texts of the pages about keys and accounts.
 */
import type { Count } from "./count.ts"

export const accountTexts = (_count: Count) => ({})
