/** A family that nobody writes: `<|use|>wx{"city":"Oslo"}<|done|>`. It shows all that a form is. */
import { OPEN_BRACE } from "../../src/stream/characters.ts"
import type { Form } from "../../src/tools/form.ts"
import { readNamedArguments } from "../../src/tools/forms/jsonArguments.ts"
import { takeEndToken } from "../../src/tools/forms/tokens.ts"
import { takeUntil } from "../../src/tools/reading.ts"

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
