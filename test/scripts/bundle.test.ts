/**
 * The bundle and `scripts/start`: what it runs, when it bundles again, and its fallback.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { execFile } from "node:child_process"
import { appendFileSync, cpSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { buildService, missingOfUndici } from "../../scripts/bundle/service.ts"
import { built } from "../support/built.ts"
import { checkout, root } from "../support/checkout.ts"
import { isWhole } from "../support/effort.ts"
import { service } from "../support/service.ts"

let folder: string
beforeAll(() => {
  folder = checkout()
  if (isWhole) return
  // In a daily run the first bundle is that of the repository, which is of the same sources.
  const { dir, name } = path.parse(service)
  for (const file of readdirSync(dir)) {
    if (file.startsWith(name)) cpSync(path.join(dir, file), path.join(folder, "node_modules/.cache/service", file))
  }
})
afterAll(() => rmSync(folder, { recursive: true }))

const start = (...args: ReadonlyArray<string>) =>
  new Promise<{ readonly code: unknown; readonly stdout: string; readonly stderr: string }>((resolve) => {
    execFile(path.join(folder, "scripts/start"), args, { cwd: tmpdir() }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : error.code, stdout, stderr })
    })
  })

const bundles = () =>
  readdirSync(path.join(folder, "node_modules/.cache/service")).filter((name) => name.endsWith(".js"))
const building = "Building the service…\n"
const version = path.join("src", "admin/system/build.ts")

/** Changes the version in the sources. */
const edit = (to: string) => {
  const file = path.join(folder, version)
  const text = readFileSync(file, "utf8")
  writeFileSync(file, text.replace(/currentVersion: string = .*/, `currentVersion: string = "${to}"`))
}

describe("the bundle of scripts/start", () => {
  it("is built once for the same sources, and again after an edit", async () => {
    const first = await start("--version")
    assert.match(first.stdout, /^model-gateway v\d.*, bundle\)\n$/)
    assert.deepEqual([first.code, first.stderr], [0, isWhole ? building : ""])

    // Modification times are irrelevant.
    utimesSync(path.join(folder, version), new Date(), new Date())
    assert.deepEqual(await start("--version"), { ...first, stderr: "" })

    const older = path.join(folder, "node_modules/.cache/service/1-1.js")
    writeFileSync(older, "")
    utimesSync(older, new Date(0), new Date(0))
    const before = bundles().filter((name) => name !== path.basename(older))
    edit("1.1.1")
    const edited = await start("--version")
    assert.deepEqual([edited.stdout.includes("v1.1.1"), edited.stderr], [true, building])
    // The bundle before is kept, older ones are not.
    assert.lengthOf(bundles(), 2)
    assert.includeMembers(bundles(), before)

    cpSync(path.join(root, version), path.join(folder, version), { preserveTimestamps: true })
    assert.deepEqual(await start("--version"), { ...first, stderr: "" })
  })

  it("is not replaced by an older one when the sources have errors: the start fails and prints them", async () => {
    appendFileSync(path.join(folder, version), "\nexport const broken = {\n")
    const { code, stderr, stdout } = await start("--version")
    assert.deepEqual([code, stdout], [1, ""])
    assert.match(stderr, /system\/build\.ts/)
    assert.match(stderr, /\nThe service could not be built\.\n$/)
    cpSync(path.join(root, version), path.join(folder, version))
  })

  it("is left out where the folder is not writable: the sources run", async () => {
    rmSync(path.join(folder, "node_modules/.cache"), { recursive: true })
    writeFileSync(path.join(folder, "node_modules/.cache"), "")
    const { code, stderr, stdout } = await start("--version")
    assert.match(stdout, /, source\)\n$/)
    assert.deepEqual([code, stderr.split("\n").length], [0, 2])
    assert.match(stderr, /^The service cannot be bundled here/)
  })
})

describe("the bundle", () => {
  it("refuses what its part of undici lacks, which would be undefined", () => {
    const imported = (names: string) => missingOfUndici(`import { ${names} } from "@effect/platform-node/Undici"`)
    assert.deepEqual(imported("Agent, request, type Client"), ["request"])
    assert.deepEqual(imported("EnvHttpProxyAgent, buildConnector, errors"), [])
  })

  it(
    "is made of packages that are installed for running, has every page, is small, and has nothing of src/testing",
    async () => {
      const lock = JSON.parse(readFileSync(path.join(root, "package-lock.json"), "utf8")) as {
        readonly packages: Readonly<Record<string, { readonly dev?: boolean }>>
      }
      const info = { form: "bundle", commit: null, date: null, assets: "./x.assets" } as const
      const { assets, code, modules, packages } = await built("bundle", () => buildService("main.ts", info, "quick"))
      for (const { name, text } of packages) {
        assert.notProperty(lock.packages[`node_modules/${name}`], "dev", `${name} belongs to the dependencies`)
        assert.isAbove(text.length, 100)
      }
      assert.includeMembers(packages.map(({ name }) => name), ["effect", "undici", "jose", "preact"])
      assert.includeMembers([...assets.keys()], ["swagger.json.br", "console/index.html", "THIRD_PARTY_LICENSES.txt"])
      assert.isBelow(code.length, 2.8e6)
      const sources = modules.map((module) => path.relative(root, module))
      assert.include(sources, path.join("src", "upstream", "embedded", "answerer.ts"))
      assert.deepEqual(sources.filter((file) => file.startsWith(path.join("src", "testing"))), [])
      // The scripts of the store are texts in the bundle: no file beside it has them.
      assert.notMatch(code, /\.lua"/)
      assert.match(code, /^[\0-\x7f]*$/)
      // Modules that every command of the bundle loads: Node's own, without a database.
      const imports = [...code.matchAll(/(?:^|;|\n)import(?:[^"';()]*from)?\s*"([^"]+)"/g)].map(([, name = ""]) => name)
      assert.deepEqual(imports.filter((name) => !name.startsWith("node:") || name === "node:sqlite"), [])
    }
  )
})
