import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { execFileSync } from "node:child_process"
import { mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { afterAll } from "vitest"
import { readRegularFile } from "../../src/config/regularFile.ts"

const folder = mkdtempSync(path.join(tmpdir(), "files-"))
afterAll(() => rmSync(folder, { recursive: true }))
const at = (name: string) => path.join(folder, name)

writeFileSync(at("file"), "0123456789")
symlinkSync(at("file"), at("link"))
symlinkSync("/dev/zero", at("to-device"))
execFileSync("mkfifo", [at("pipe")])
writeFileSync(at("huge"), "")
truncateSync(at("huge"), 2 ** 40)

const read = async (file: string, most: number) => {
  const outcome = await Effect.runPromise(Effect.result(readRegularFile(file, most)))
  return Result.isSuccess(outcome) ? outcome.success.toString() : outcome.failure.message
}

describe("a file that the operator names", () => {
  it("is read up to its bound, also by a link", async () => {
    assert.strictEqual(await read(at("file"), 10), "0123456789")
    assert.strictEqual(await read(at("link"), 11), "0123456789")
  })

  it.each([
    ["is missing", at("none"), ": there is no such file"],
    ["is a folder", folder, " is a folder, not a file"],
    ["is a pipe without a writer", at("pipe"), " is not a regular file"],
    ["is a device", "/dev/zero", " is not a regular file"],
    ["is a link to a device", at("to-device"), " is not a regular file"],
    ["is longer than its bound", at("file"), " is longer than 9 bytes"],
    ["has a terabyte", at("huge"), " is longer than 9 bytes"]
  ])("is not read if it %s", async (_, file, rule) => {
    assert.strictEqual(await read(file, 9), `${file}${rule}`)
  })
})
