/** The compiler's declarations come in any order of their unions' members, and go out in one. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { sortUnions } from "../../scripts/release/declarations.ts"

const members = ["\"a\"", "number", "{\n    readonly b: 1 | 2;\n}", "Array<null | string>", "(() => void)"]

const declared = (order: ReadonlyArray<string>, inner: string): string =>
  `import type { A } from "./a.ts";\nexport declare const one: A<${
    order.join(" | ")
  }>;\nexport type Two = ${inner} | 0;\n`

describe("declarations", () => {
  it("are the same whatever the order of the members, and nothing else of them changes", () => {
    const expected = sortUnions("x.d.ts", declared(members, "1"))
    fc.assert(
      fc.property(fc.shuffledSubarray(members, { minLength: members.length }), fc.boolean(), (order, swapped) => {
        const text = declared(order, "1").replace("1 | 2", swapped ? "2 | 1" : "1 | 2")
        const sorted = sortUnions("x.d.ts", text)
        assert.strictEqual(sorted, expected)
        assert.sameMembers([...sorted], [...text])
      })
    )
    assert.strictEqual(sortUnions("x.d.ts", expected), expected)
  })
})
