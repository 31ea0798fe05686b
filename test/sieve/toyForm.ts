/** A made-up form, `<|use|>wx{"city":"Oslo"}<|done|>`, which shows everything that a form needs. */
import { OPEN_BRACE } from "../../src/domain/stream/characters.ts"
import type { Form } from "../../src/sieve/form.ts"
import { readNamedArguments } from "../../src/sieve/forms/jsonArguments.ts"
import { takeEndToken } from "../../src/sieve/forms/tags.ts"
import { takeUntil } from "../../src/sieve/reading.ts"

const ends = new Set(["done"])

export const toyForm: Form = {
  name: "use token",
  opening: { at: "tag", names: ["use"] },
  markers: { tokens: ["use", ...ends] },
  bound: 128,
  *read(context, head) {
    if (head === undefined || !head.isMarked) return
    const name = (yield* takeUntil(context.source, (c) => c === OPEN_BRACE)).trim()
    if (name === "") return
    if ((yield* readNamedArguments(context, name, ends)) === "call") yield* takeEndToken(context, ends)
  }
}
