/** The changelog, without which there is no release. */
import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import path from "node:path"
import { checkChangelog, manifest, root } from "../../scripts/release/facts.ts"

describe("a release", () => {
  it("fails unless the changelog has a section with text for its version", () => {
    const changelog = "# Changelog\n\n## 1.1.0\n\n## 1.0.0 (2030-01-01)\n\n- The first one.\n"
    assert.doesNotThrow(() => checkChangelog(changelog, "1.0.0"))
    assert.throws(() => checkChangelog(changelog, "1.0"), "CHANGELOG.md has no section 1.0")
    assert.throws(() => checkChangelog(changelog, "1.1.0"), "the section 1.1.0 of CHANGELOG.md is empty")
  })

  it("has a section in this repository", () => {
    assert.doesNotThrow(() => checkChangelog(readFileSync(path.join(root, "CHANGELOG.md"), "utf8"), manifest.version))
  })
})
