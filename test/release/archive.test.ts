/**
 * Release archives: readable by any tar, with bytes that depend only on the content.
 */
import { afterAll, assert, describe, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { gunzipSync } from "node:zlib"
import { machineOf, needsOf } from "../../scripts/release/binaries.ts"
import { makeImage, runConfig } from "../../scripts/release/image.ts"
import { fileIn, platforms, runsHere } from "../../scripts/release/nodes.ts"
import { type Entry, tar } from "../../scripts/release/tar.ts"

const folder = mkdtempSync(path.join(tmpdir(), "archive-"))
afterAll(() => rmSync(folder, { recursive: true }))

const time = 1_700_000_000
const deep = `${"a-long-name/".repeat(10)}file`
const entries: ReadonlyArray<Entry> = [
  { path: "b.txt", content: Buffer.from("second") },
  { path: "a", mode: 0o700, owner: 65_532 },
  { path: "a/empty", content: Buffer.alloc(0) },
  { path: "a/program", content: Buffer.alloc(1_000, "x"), mode: 0o755 },
  { path: deep, content: Buffer.from("deep") }
]

describe("an archive", () => {
  it("is read by the system's tar, with permissions, owners and times", () => {
    const file = path.join(folder, "a.tar")
    writeFileSync(file, tar(entries, time))
    const listed = execFileSync("tar", ["-tvf", file, "--numeric-owner", "--full-time", "--utc"], { encoding: "utf8" })
      .trimEnd().split("\n").map((line) => line.split(/\s+/))
    assert.deepEqual(
      listed.map(([mode, owner, size, date, , name]) => [mode, owner, size, date, name]),
      [
        ["drwx------", "65532/65532", "0", "2023-11-14", "a/"],
        ["-rw-r--r--", "0/0", "4", "2023-11-14", deep],
        ["-rw-r--r--", "0/0", "0", "2023-11-14", "a/empty"],
        ["-rwxr-xr-x", "0/0", "1000", "2023-11-14", "a/program"],
        ["-rw-r--r--", "0/0", "6", "2023-11-14", "b.txt"]
      ].toSorted(([, , , , a = ""], [, , , , b = ""]) => a.replace(/\/$/, "") < b.replace(/\/$/, "") ? -1 : 1)
    )
  })

  it("is the same whatever the order of what goes in, and gives back what went in", () => {
    const archive = tar(entries, time)
    assert.isTrue(archive.equals(tar(entries.toReversed(), time)))
    for (const entry of entries) {
      if (entry.content === undefined) continue
      assert.isTrue(fileIn(archive, entry.path)?.equals(entry.content), entry.path)
    }
    assert.isUndefined(fileIn(archive, "none"))
  })
})

describe.skipIf(process.platform !== "linux" || process.arch !== "x64")("the image", () => {
  const program = Buffer.from(readFileSync("/bin/cat"))
  const revision = "0123456789abcdef0123456789abcdef01234567"
  const facts = { version: "1.2.3", revision, dirty: false, time }

  it("is a layout of blobs named by their content, with a program on what it needs", async () => {
    const files = await makeImage(program, "the notices", facts)
    const read = (name: string): Buffer => Buffer.from(files.get(name) ?? assert.fail(`no ${name}`))
    const parse = (name: string) => JSON.parse(read(name).toString())
    const blob = ({ digest, size }: { readonly digest: string; readonly size: number }): string => {
      const name = `blobs/${digest.replace(":", "/")}`
      assert.strictEqual(createHash("sha256").update(read(name)).digest("hex"), digest.slice("sha256:".length))
      assert.strictEqual(read(name).length, size)
      return name
    }
    assert.deepEqual(parse("oci-layout"), { imageLayoutVersion: "1.0.0" })
    const [listed, ...others] = parse("index.json").manifests
    assert.deepEqual([others.length, listed.platform, listed.annotations], [
      0,
      { architecture: "amd64", os: "linux" },
      { "org.opencontainers.image.ref.name": "1.2.3" }
    ])
    const manifest = parse(blob(listed))
    const config = parse(blob(manifest.config))
    assert.deepInclude(config.config, runConfig)
    assert.strictEqual(config.config.Labels["org.opencontainers.image.revision"], revision)
    const [base, own] = manifest.layers.map(blob).map((name: string) => gunzipSync(read(name))) as [Buffer, Buffer]
    assert.deepEqual(
      [base, own].map((layer) => `sha256:${createHash("sha256").update(layer).digest("hex")}`),
      config.rootfs.diff_ids
    )
    assert.isTrue(fileIn(own, "usr/local/bin/model-gateway")?.equals(program))
    assert.match(String(fileIn(base, "etc/passwd")), /^nonroot:x:65532:65532:/)
    assert.strictEqual(String(fileIn(base, "licenses/THIRD_PARTY_LICENSES.txt")), "the notices")
    // The loader's files are present, and no shell.
    const { libraries, loader } = needsOf(program)
    assert.include(libraries, "libc.so.6")
    assert.isDefined(fileIn(base, loader!.slice(1)))
    const file = path.join(folder, "base.tar")
    writeFileSync(file, base)
    const names = execFileSync("tar", ["-tf", file], { encoding: "utf8" }).trimEnd().split("\n")
    for (const library of libraries) assert.isTrue(names.some((name) => name.endsWith(`/${library}`)), library)
    assert.includeMembers(names, ["tmp/", "data/"])
    assert.isEmpty(names.filter((name) => /(?:^|\/)s?bin\//.test(name)))

    const again = await makeImage(program, "the notices", facts)
    assert.deepEqual([...again.keys()].sort(), [...files.keys()].sort())
  })
})

describe("an executable's header", () => {
  it("says for which machine it is", () => {
    const own = platforms.find(runsHere)
    assert.deepEqual(machineOf(readFileSync(process.execPath)), own?.machine)
    assert.isAbove(statSync(process.execPath).size, 0)
    assert.isUndefined(machineOf(Buffer.alloc(64)))
  })
})
