/**
 * The configured currency.
 */
import { readOf } from "./reads.ts"
import { useValue } from "./registry.ts"

/** The usage reply names it. */
const usageAtom = readOf("admin-usage", "query", { query: { by: "day" }, reactivityKeys: ["config"] })

/** The configured currency; `undefined` without one. */
export const useCurrency = (): string | undefined => useValue(usageAtom)?.currency ?? undefined
