/**
 * The package in a fresh project: each way of embedding type-checks and runs, and so do the snippets of the README and
 * of docs.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { execFile } from "node:child_process"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { promisify } from "node:util"
import { gzipSync } from "node:zlib"
import { anyTypes, importedModules } from "../../scripts/release/declarations.ts"
import { tar } from "../../scripts/release/tar.ts"
import { isWhole } from "../support/effort.ts"
import { allSnippets, pageText } from "../support/snippets.ts"
import { installPackage, type Project } from "./installed.ts"

const execute = promisify(execFile)
const apps = path.join(import.meta.dirname, "apps")
const names = readdirSync(apps)
const snippets = allSnippets().filter(({ info }) => info === "ts run")

describe("the installed package", () => {
  let project: Project
  /** Runs a module of the project: alone in a whole run, else beside the others in one process, which loads Effect once. */
  let run: (name: string) => Promise<string>
  beforeAll(async () => {
    project = await installPackage()
    const files = [
      ...names.map((name) => project.add(name, readFileSync(path.join(apps, name), "utf8"))),
      ...snippets.map((snippet, i) => project.add(`snippet${i}.ts`, snippet.text))
    ]
    const printed = isWhole ? undefined : await project.runTogether(files)
    run = async (name) => {
      const file = path.join(project.folder, name)
      return printed?.[file] ?? await project.run(file)
    }
  })
  afterAll(() => project.remove())

  it("type-checks in apps that use it", () => project.check())

  it("has apps for its ways of embedding", () => assert.isNotEmpty(names))

  it.each(names)("runs in the app %s", async (name) => {
    assert.strictEqual(await run(name), "")
  })

  it("has peers of the versions that docs/library/README.md states", () => {
    const { engines, peerDependencies } = JSON.parse(
      new TextDecoder().decode(project.files.get("package.json"))
    ) as { readonly engines: { readonly node: string }; readonly peerDependencies: Readonly<Record<string, string>> }
    const page = pageText("docs/library/README.md")
    assert.include(page, `Node ${engines.node.replace(/^>=/, "").replace(/\.0$/, "")} or later`)
    assert.strictEqual(peerDependencies["@effect/platform-node"], peerDependencies["effect"])
    assert.include(page, `effect@${peerDependencies["effect"]} @effect/platform-node@${peerDependencies["effect"]}\n`)
    assert.include(page, `\`effect\` and \`@effect/platform-node\` \`${peerDependencies["effect"]}\``)
    assert.include(page, `\`redis\` \`${peerDependencies["redis"]}\``)
  })

  const declarations = () => {
    const types = new Map<string, string>()
    for (const [name, content] of project.files) {
      if (name.endsWith(".d.ts")) types.set(name, new TextDecoder().decode(content))
    }
    assert.isAbove(types.size, 100)
    return types
  }

  it("exports no type any", () => {
    const found = [...declarations()].flatMap(([name, text]) => anyTypes(name, text).map((line) => `${name}:${line}`))
    assert.deepEqual(found, [])
  })

  it("has declarations that import only its own files, Node and its peers, so that no type becomes any silently", () => {
    const types = declarations()
    const { peerDependencies } = JSON.parse(new TextDecoder().decode(project.files.get("package.json"))) as {
      readonly peerDependencies: object
    }
    const peers = Object.keys(peerDependencies)
    for (const [name, text] of types) {
      for (const module of importedModules(name, text)) {
        const known = module.startsWith("./") || module.startsWith("../")
          ? types.has(path.posix.join(path.posix.dirname(name), module.replace(/\.[jt]s$/, ".d.ts")))
          : module.startsWith("node:") || peers.some((peer) => module === peer || module.startsWith(`${peer}/`))
        assert.isTrue(known, `${name} imports ${module}`)
      }
    }
  })

  it("refers to source files and lines in a stack trace", async () => {
    const app = project.add(
      "fails.ts",
      `import { transduce } from "model-gateway/transducer"
import { Effect, Stream } from "effect"
const machine = { push: () => { throw new Error("here") }, end: () => [] }
const failed = Stream.runDrain(transduce(() => machine)(Stream.make("a"))).pipe(Effect.catchDefect((defect) => Effect.sync(() => console.log((defect as Error).stack))))
await Effect.runPromise(failed)
`
    )
    const trace = await project.run("--enable-source-maps", app)
    const [, file = "", line = ""] = /model-gateway\/(src\/[\w/]+\.ts):(\d+)/.exec(trace) ?? assert.fail(trace)
    const source = readFileSync(path.join(import.meta.dirname, "../..", file), "utf8").split("\n")
    assert.match(source[Number(line) - 1] ?? "", /push\(/)
  })

  it("contains the service as one file behind a launcher", async () => {
    const dist = path.join(project.folder, "node_modules/model-gateway/dist")
    assert.notMatch(readFileSync(path.join(dist, "service.js"), "utf8"), /from"(?:effect|@effect|jose|undici|redis|\.)/)
    assert.match(await project.run(path.join(dist, "cli.js"), "--version"), /^model-gateway v\d.*, package\)\n$/)
    assert.match(await project.run(path.join(dist, "cli.js"), "licenses"), /^undici \d/m)
  })

  it("contains a command that runs the reference upstream", async () => {
    const dist = path.join(project.folder, "node_modules/model-gateway/dist")
    assert.match(await project.run(path.join(dist, "reference.js"), "--help"), /model-gateway-reference/)
  })

  it("contains no development files, and no development fields in its manifest", () => {
    const files = readdirSync(path.join(project.folder, "node_modules/model-gateway"), {
      recursive: true,
      withFileTypes: true
    }).filter((file) => file.isFile()).map(({ name }) => name)
    assert.includeMembers(files, ["package.json", "README.md", "LICENSE", "THIRD_PARTY_LICENSES.txt", "cli.js"])
    assert.deepEqual(files.filter((name) => /\.(?:sh|test\.\w+)$|(?<!\.d)\.ts$/.test(name)), [])
    const manifest = JSON.parse(
      readFileSync(path.join(project.folder, "node_modules/model-gateway/package.json"), "utf8")
    ) as object
    assert.containsAllKeys(manifest, ["exports", "bin", "engines", "peerDependenciesMeta"])
    assert.doesNotHaveAnyKeys(manifest, [
      "private",
      "scripts",
      "dependencies",
      "devDependencies",
      "optionalDependencies"
    ])
  })

  it("has entry points for the API, the contracts, the pool, the sieve and the transducer that do not import Node", () => {
    const dist = path.join(project.folder, "node_modules/model-gateway/dist")
    const imports = (file: string): Array<string> =>
      [...readFileSync(path.join(dist, file), "utf8").matchAll(/^(?:import|export) .*?from "(.+?)";$/gm)].flatMap(
        ([, name = ""]) => name.startsWith(".") ? imports(path.join(path.dirname(file), name)) : [name]
      )
    for (const entry of ["api.js", "contracts.js", "pool.js", "sieve.js", "transducer.js"]) {
      const names = imports(entry)
      assert.isNotEmpty(names)
      assert.deepEqual(names.filter((name) => !name.startsWith("effect/")), [])
    }
  })

  it(
    "installs by npm without a network, and names the required version in an older Node",
    async () => {
      const folder = mkdtempSync(path.join(tmpdir(), "npm-"))
      const tarball = gzipSync(
        tar([...project.files].map(([name, content]) => ({ path: `package/${name}`, content })), 0)
      )
      assert.isBelow(tarball.length, 3.2e6)
      writeFileSync(path.join(folder, "package.tgz"), tarball)
      // The Node that runs the tests, because the machine's own may be older.
      const PATH = `${path.dirname(process.execPath)}:${process.env["PATH"]}`
      const options = { cwd: folder, env: { PATH, HOME: folder } }
      await execute("npm", ["install", "--offline", "--no-audit", "--no-fund", "./package.tgz"], options)
      assert.deepEqual(readdirSync(path.join(folder, "node_modules")).filter((name) => !name.startsWith(".")), [
        "model-gateway"
      ])
      const { stdout } = await execute("npx", ["--offline", "model-gateway", "--version"], options)
      assert.match(stdout, /^model-gateway v\d.*, package\)\n$/)

      // Another Effect in the app, as npm finds it: a folder that needs no network.
      const other = path.join(folder, "other-effect")
      mkdirSync(other)
      writeFileSync(path.join(other, "package.json"), JSON.stringify({ name: "effect", version: "4.0.0" }))
      const clash = await execute("npm", ["install", "--offline", "--no-audit", "--no-fund", "./other-effect"], options)
        .then(
          () => assert.fail("installed"),
          (error: { readonly stderr: string }) => error
        )
      assert.match(clash.stderr, /ERESOLVE[^]*effect@"~/)

      // The launcher's syntax is old enough for an older Node to print the message.
      const older = `Object.defineProperty(process, "versions", { value: { node: "20.9.0" } })`
      writeFileSync(path.join(folder, "older.cjs"), older)
      const cli = path.join(folder, "node_modules/model-gateway/dist/cli.js")
      const refused = await execute(process.execPath, ["--require", "./older.cjs", cli], options).then(
        () => assert.fail("ran"),
        (error: { readonly code: number; readonly stderr: string }) => error
      )
      assert.strictEqual(refused.code, 1)
      assert.match(refused.stderr, /^model-gateway needs Node\.js 22\.19 or later; this is v[\d.]+\.\n$/)
      rmSync(folder, { recursive: true })
    }
  )

  it("runs the snippets of the README and of docs as written", async () => {
    for (const [i, snippet] of snippets.entries()) {
      const printed = await run(`snippet${i}.ts`)
      if (snippet.prints !== undefined) assert.strictEqual(printed.trim(), snippet.prints.trim(), snippet.name)
    }
  })
})
