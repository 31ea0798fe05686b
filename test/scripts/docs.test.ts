/** The reference tables in docs are those that `npm run docs` writes. */
import { assert, describe, it } from "@effect/vitest"
import { documents } from "../../scripts/docs.ts"

describe("the reference tables in docs", () => {
  it("match the definitions that they are made from (`npm run docs` writes them)", async () => {
    const files = await documents()
    assert.sameMembers(files.map(({ name }) => name), [
      "admin-api.md",
      "clients.md",
      "command-line.md",
      "environment.md",
      "fidelity.md",
      "limits.md",
      "settings.md",
      "testing.md"
    ])
    for (const { made, name, text } of files) assert.strictEqual(text, made, name)
  })
})
