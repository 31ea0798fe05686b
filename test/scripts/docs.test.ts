/** The reference tables in docs are those that `npm run docs` writes. */
import { assert, describe, it } from "@effect/vitest"
import { documents } from "../../scripts/docs.ts"

describe("the reference tables in docs", () => {
  it("match the definitions that they are made from (`npm run docs` writes them)", async () => {
    const files = await documents()
    assert.sameMembers(files.map(({ name }) => name), [
      "clients/README.md",
      "library/exports.md",
      "library/scripted-upstream.md",
      "library/testing.md",
      "operate/webhooks.md",
      "reference/admin-api.md",
      "reference/command-line.md",
      "reference/configuration.md",
      "reference/environment.md",
      "reference/errors.md",
      "reference/http-api.md",
      "reference/request-fields.md"
    ])
    for (const { made, name, text } of files) assert.strictEqual(text, made, name)
  })
})
