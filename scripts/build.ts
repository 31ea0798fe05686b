// Builds the package into dist: the library as ES modules with their types, and the service as one file that starts fast.
// The library leaves out what an app has already (Effect, its platform, its dependencies); the service has it all.
import { execFile } from "node:child_process"
import { rmSync } from "node:fs"
import path from "node:path"
import { promisify } from "node:util"
import { build } from "rolldown"
import { luaTexts } from "./bundle/service.ts"
import { buildConsole } from "./console.ts"

const root = path.join(import.meta.dirname, "..")
const dist = path.join(root, "dist")
const source = (name: string): string => path.join(root, "src", `${name}.ts`)

const library = () =>
  build({
    input: Object.fromEntries(["index", "api", "console", "sieve", "transducer"].map((name) => [name, source(name)])),
    platform: "node",
    external: [/^effect(?:\/|$)/, /^@effect\//, "jose", "redis"],
    plugins: [luaTexts],
    output: { dir: dist, format: "esm", chunkFileNames: "chunks/[name]-[hash].js" }
  })

const service = () =>
  build({
    input: source("main"),
    platform: "node",
    plugins: [luaTexts],
    output: { file: path.join(dist, "service.js"), format: "esm", minify: true, codeSplitting: false }
  })

const types = async () => {
  const tsc = path.join(root, "node_modules/.bin/tsc")
  await promisify(execFile)(tsc, ["--project", path.join(root, "tsconfig.build.json")])
}

rmSync(dist, { recursive: true, force: true })
await Promise.all([library(), service(), types(), buildConsole(path.join(dist, "console"))])
