/**
 * What errors are for.
 */
import type { Hour } from "./hour.ts"

type CodeErrors = Hour["errors"][number]

/** The nouns in the order of their weight: of those that all errors are for, an operator looks at the first. */
const nouns = {
  caller: ["key", "model", "upstream"],
  others: ["upstream", "model", "key"]
} as const

/** The key, model or upstream with the greatest share of the errors of a code; `undefined` if none is known. */
export const mostlyFor = (error: CodeErrors) => {
  const known = nouns[error.fault === "caller" ? "caller" : "others"].flatMap((noun) => {
    const most = error[noun]
    return most === null ? [] : [{ noun, ...most }]
  })
  return known.reduce<(typeof known)[number] | undefined>(
    (most, each) => most === undefined || each.count > most.count ? each : most,
    undefined
  )
}
