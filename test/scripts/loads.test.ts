/**
 * What each entry of the package loads: the folders of src exactly, files and lines at most. An app that imports a part pays for no other one.
 */
import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import path from "node:path"
import { entries, loadsOf } from "../../scripts/loads.ts"

const gateway = [
  "accounts",
  "admin",
  "cluster",
  "completion",
  "config",
  "contracts",
  "credentials",
  "domain",
  "http",
  "placement",
  "recordings",
  "server",
  "sieve",
  "styles",
  "upstream",
  "usage"
]

/** The folders, files and lines of each entry. */
const loads: Readonly<Record<string, readonly [folders: ReadonlyArray<string>, files: number, lines: number]>> = {
  "src/api.ts": [
    [
      "admin",
      "config",
      "contracts",
      "domain",
      "http",
      "inProcess",
      "placement",
      "recordings",
      "server",
      "styles",
      "usage"
    ],
    113,
    14_100
  ],
  "src/cluster.ts": [gateway, 744, 99_350],
  "src/console.ts": [["admin", "cluster", "config", "contracts", "domain", "http", "server"], 101, 12_800],
  "src/contracts.ts": [["contracts", "domain", "sieve"], 166, 21_100],
  "src/index.ts": [[...gateway, "inProcess"].toSorted(), 755, 100_450],
  "src/pool.ts": [["domain", "placement"], 15, 2_760],
  "src/sieve.ts": [["domain", "sieve"], 42, 6_000],
  "src/styles.ts": [["completion", "config", "contracts", "domain", "http", "sieve", "styles"], 228, 27_550],
  "src/testing.ts": [[...gateway, "testing"].toSorted(), 770, 103_200],
  "src/transducer.ts": [["domain"], 8, 800]
}

describe("The entries of the package", () => {
  it("are all counted here", () => {
    assert.sameMembers([...entries], Object.keys(loads))
  })

  it.each(Object.entries(loads))("load what they need: %s", (entry, [folders, mostFiles, mostLines]) => {
    const loaded = loadsOf(entry)
    assert.deepStrictEqual(loaded.folders, folders)
    assert.isAtMost(loaded.files.length, mostFiles)
    assert.isAtMost(loaded.lines, mostLines)
  })

  it("load a small upstream of the gateway's own", () => {
    const { files } = loadsOf("src/index.ts")
    const own = files.filter((file) => file.startsWith("src/upstream/embedded/"))
    const lines = own.map((file) =>
      readFileSync(path.join(import.meta.dirname, "../..", file), "utf8").split("\n").length - 1
    )
    assert.isAtLeast(own.length, 2)
    assert.isAtMost(lines.reduce((sum, each) => sum + each, 0), 500)
  })

  it.each(["chat", "embeddings", "generate", "messages", "responses"])(
    "serve a client API without pool, records, usage and the configuration's document: %s",
    (style) => {
      const { files, folders } = loadsOf(`src/styles/${style}/Handlers.ts`)
      assert.includeMembers(["completion", "config", "contracts", "domain", "http", "sieve", "styles"], [...folders])
      assert.includeMembers(
        ["clock/Deadlines", "clock/cooperative", "limits", "LastingEncryption"].map((name) => `src/config/${name}.ts`),
        files.filter((file) => file.startsWith("src/config/"))
      )
    }
  )

  it("load no module of the store before one is configured, but its interface and the shared configuration", () => {
    for (const entry of ["src/index.ts", "src/main.ts", "src/server/cli/program.ts"]) {
      const { files } = loadsOf(entry)
      for (const file of ["client", "makeStore", "connection", "scripts"]) {
        assert.notInclude(files, `src/cluster/store/${file}.ts`)
      }
      for (
        const file of ["accounts/shared/sharedPool", "accounts/shared/claims", "usage/sharedLimits", "usage/redisStore"]
      ) {
        assert.notInclude(files, `src/${file}.ts`)
      }
      for (const file of ["styles/responses/store/sharedResponses", "upstream/sharedRefusals", "server/serveShared"]) {
        assert.notInclude(files, `src/${file}.ts`)
      }
    }
  })

  it("load no command of the command line before it is called", () => {
    const { files } = loadsOf("src/server/cli/program.ts")
    assert.deepStrictEqual(files.filter((file) => /cli\/(?:import|agents|.*[cC]ommands)/.test(file)), [])
    const commands = loadsOf("src/server/cli/commands.ts")
    assert.deepStrictEqual(
      commands.files.filter((file) => /cli\/import\/(?!command\.ts)/.test(file)),
      []
    )
  })
})
