/**
 * The compiler emits union members in any order; the release sorts them.
 */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { anyTypes, importedModules, sortUnions } from "../../scripts/release/declarations.ts"

const members = ["\"a\"", "number", "{\n    readonly b: 1 | 2;\n}", "Array<null | string>", "(() => void)"]

const declared = (order: ReadonlyArray<string>, inner: string): string =>
  `import type { A } from "./a.ts";\nexport declare const one: A<${
    order.join(" | ")
  }>;\nexport type Two = ${inner} | 0;\n`

describe("a declaration file", () => {
  it("is searched for types that are any, and not for the word", () => {
    const text = `/** any */
export declare const mode: "any";
export declare const open: (whole?: any, ...rest: ReadonlyArray<Map<string, any>>) => void;
export interface A { readonly any: string; readonly b: any[] }
`
    assert.deepEqual(anyTypes("x.d.ts", text), [3, 3, 4])
  })

  it("is searched for the modules that it names, in whatever way", () => {
    const text = `import type { A } from "one";
export { B } from "./two.ts";
export * from "three/a";
export type C = import("./four.ts").D | A;
`
    assert.sameMembers(importedModules("x.d.ts", text), ["one", "./two.ts", "three/a", "./four.ts"])
  })
})

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
