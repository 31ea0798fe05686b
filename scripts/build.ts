// Builds the package into dist: the library as ES modules with their types, and the service as one file that starts fast.
// The library leaves out what an app has already (Effect, its platform, its dependencies); the service has it all.
import { execFile } from "node:child_process"
import { readFileSync, rmSync } from "node:fs"
import path from "node:path"
import { promisify } from "node:util"
import { build, type Plugin } from "rolldown"
import { buildConsole } from "./console.ts"

const root = path.join(import.meta.dirname, "..")
const dist = path.join(root, "dist")
const source = (name: string): string => path.join(root, "src", `${name}.ts`)

/** Puts the texts of Lua scripts where they are read from files. */
const luaTexts: Plugin = {
  name: "lua-texts",
  transform(code, id) {
    if (!id.endsWith("/src/store/scripts.ts")) return undefined
    const whole = code.replaceAll(
      /text\(new URL\("([^"]+\.lua)", import\.meta\.url\)\)/g,
      (_, file: string) => JSON.stringify(readFileSync(path.join(path.dirname(id), file), "utf8"))
    )
    return { code: whole }
  }
}

const library = () =>
  build({
    input: Object.fromEntries(["index", "api", "sieve", "transducer"].map((name) => [name, source(name)])),
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
