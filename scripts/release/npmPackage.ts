// The npm package: the library as ES modules with types, and the service as one file behind a launcher that rejects an older Node. The
// library imports Effect, its platform and the store's client from the app; the service bundles them.
import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import type { SourceMapPayload } from "node:module"
import path from "node:path"
import { promisify } from "node:util"
import { build } from "rolldown"
import type { BuildInfo } from "../../src/admin/system/build.ts"
import { packAssets } from "../bundle/assets.ts"
import { buildService, bundle, defineBuild, luaTexts, noticesAsset, type Service } from "../bundle/service.ts"
import type { Effort } from "../console.ts"
import { declarationsCommand, declarationsFolder, sortUnions } from "./declarations.ts"
import { manifest, root } from "./facts.ts"
import { lineMap } from "./lineMaps.ts"

/** Files by their path in the package. */
export type Files = ReadonlyMap<string, Uint8Array>

const assetsFile = "service.assets"

/** Commit and date of a build, or `null`. */
export type Origin = Pick<BuildInfo, "commit" | "date">

const infoOf = (origin: Origin): BuildInfo => ({ form: "package", ...origin, assets: `./${assetsFile}` })

/** The modules in src that `exports` names. */
const entries = Object.keys(manifest.exports).filter((name) => name !== "./package.json")
  .map((name) => name === "." ? "index" : name.slice(2))

const library = async (origin: Origin): Promise<Array<[string, Uint8Array]>> => {
  const { output } = await build({
    cwd: root,
    input: {
      ...Object.fromEntries(entries.map((name) => [name, path.join(root, "src", `${name}.ts`)])),
      reference: path.join(root, "src/testing/main.ts")
    },
    platform: "node",
    write: false,
    external: [/^effect(?:\/|$)/, /^@effect\//, "redis"],
    plugins: [luaTexts],
    transform: { define: defineBuild(infoOf(origin)) },
    // One folder, so that the module that reads the assets finds them in its own folder.
    output: {
      format: "esm",
      entryFileNames: "[name].js",
      chunkFileNames: "[name]-[hash].js",
      sourcemap: true,
      // The declarations carry the docs of the API. Notes for other bundlers and of licenses stay.
      comments: { legal: true, annotation: true, jsdoc: false }
    }
  })
  return output.flatMap((part) => {
    if (part.type !== "chunk") return []
    const code = Buffer.from(part.code)
    if (part.map === null) return [[part.fileName, code]]
    // Stack traces name the files and lines of the sources.
    const map = lineMap(
      part.code,
      JSON.parse(part.map.toString()) as SourceMapPayload,
      (source) => source.startsWith("../src/")
    )
    return [[part.fileName, code], [`${part.fileName}.map`, Buffer.from(JSON.stringify(map))]]
  })
}

const types = async (): Promise<Array<[string, Uint8Array]>> => {
  const [command, ...args] = declarationsCommand
  await promisify(execFile)(command, args, { cwd: root }).catch((error: { readonly stdout: string }) => {
    throw new Error(`the declarations were not made:\n${error.stdout}`)
  })
  // What no entry point leads to, no app can import.
  const files = new Map<string, Buffer>()
  const read = (file: string): void => {
    if (files.has(file)) return
    const text = sortUnions(file, readFileSync(path.join(declarationsFolder, file), "utf8"))
    files.set(file, Buffer.from(text))
    for (const [, target = ""] of text.matchAll(/["'](\.{1,2}\/[^"']+)\.[jt]s["']/g)) {
      read(path.posix.join(path.posix.dirname(file), `${target}.d.ts`))
    }
  }
  for (const name of entries) read(`src/${name}.d.ts`)
  return Array.from(files, ([file, text]) => [`types/${file}`, text])
}

/** In old syntax, so that an old Node can run it and print the message. */
const launcher = `#!/usr/bin/env node
var version = process.versions.node.split(".").map(Number)
if (version[0] > 22 || (version[0] === 22 && version[1] >= 19)) {
  import("node:module").then(function(module) {
    module.enableCompileCache()
    return import("./main.js")
  })
} else {
  process.stderr.write("model-gateway needs Node.js 22.19 or later; this is " + process.version + ".\\n")
  process.exitCode = 1
}
`

/** The published manifest: no dependencies, and optional peers for apps that embed the library. */
const publishedManifest = (): string => {
  const { dependencies, description, engines, exports, license, name, version } = manifest
  const peers = ["effect", "@effect/platform-node", "redis"]
  return `${
    JSON.stringify(
      {
        name,
        version,
        description,
        license,
        type: "module",
        exports,
        bin: { [name]: "dist/cli.js", [`${name}-reference`]: "dist/reference.js" },
        engines,
        peerDependencies: Object.fromEntries(peers.map((peer) => [peer, `~${dependencies[peer]}`])),
        peerDependenciesMeta: Object.fromEntries(peers.map((peer) => [peer, { optional: true }]))
      },
      undefined,
      2
    )
  }\n`
}

/** The built package, and the service in it for other files of a release. */
export interface NpmPackage {
  readonly files: Files
  readonly service: Service
}

/** Builds the package. */
export const buildPackage = async (origin: Origin, effort: Effort): Promise<NpmPackage> => {
  const info = infoOf(origin)
  const [service, main, modules, declarations] = await Promise.all([
    buildService("server/cli/program.ts", info, effort),
    bundle("main.ts", info, [], { "./server/cli/program.ts": "./service.js" }),
    library(origin),
    types()
  ])
  const dist: ReadonlyArray<readonly [string, Uint8Array]> = [
    ["cli.js", Buffer.from(launcher)],
    ["main.js", Buffer.from(main.code)],
    ["service.js", Buffer.from(service.code)],
    [assetsFile, packAssets(service.assets)],
    ...modules,
    ...declarations
  ]
  const files = new Map<string, Uint8Array>([
    ["package.json", Buffer.from(publishedManifest())],
    ["README.md", readFileSync(path.join(root, "README.md"))],
    ["LICENSE", readFileSync(path.join(root, "LICENSE"))],
    [noticesAsset, service.assets.get(noticesAsset)!],
    ...dist.map(([name, content]) => [`dist/${name}`, content] as const)
  ])
  return { files, service }
}
