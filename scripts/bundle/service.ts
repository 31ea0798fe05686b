// Bundles the service: its code as one module, and its assets (see src/server/assets.ts) by name.
import { readFileSync } from "node:fs"
import path from "node:path"
import { pathToFileURL } from "node:url"
import { build, type Plugin } from "rolldown"
import type { BuildInfo } from "../../src/admin/system/build.ts"
import { brotli, type Effort, makeConsole } from "../console.ts"
import { noticesOf, type Package, packagesOf } from "./packages.ts"

const root = path.join(import.meta.dirname, "../..")

/** The asset that `model-gateway licenses` prints. */
export const noticesAsset = "THIRD_PARTY_LICENSES.txt"

const swaggerAsset = "swagger.json.br"

/** Keeps what is made, by a key: a release has the same pages in several forms. */
const kept = <A>(make: (key: string, effort: Effort) => Promise<A>) => {
  const made = new Map<string, Promise<A>>()
  return (key: string, effort: Effort): Promise<A> => {
    const promise = made.get(key + effort) ?? make(key, effort)
    made.set(key + effort, promise)
    return promise
  }
}

const compressSwagger = kept(async (file, effort) => {
  const { css, javascript } = await import(pathToFileURL(file).href) as Readonly<Record<string, string>>
  return brotli(Buffer.from(JSON.stringify({ css, javascript })), effort)
})

const builtConsole = kept((_, effort) => makeConsole(effort))

/** Swagger UI is more text than all the rest: the bundle has it compressed, among its assets. */
const swaggerPlugin = (assets: Map<string, Uint8Array>, effort: Effort): Plugin => ({
  name: "swagger",
  load: {
    filter: { id: /[\\/]http-api[\\/]internal[\\/]httpApiSwagger\.js$/ },
    async handler(id) {
      assets.set(swaggerAsset, await compressSwagger(id, effort))
      return `
        import { brotliDecompressSync } from "node:zlib"
        import { builtAssets } from ${JSON.stringify(path.join(root, "src/server/assets.ts"))}
        const { css, javascript } = JSON.parse(brotliDecompressSync(builtAssets().get("${swaggerAsset}")))
        export { css, javascript }
      `
    }
  }
})

/** Puts the texts of Lua scripts where they are read from files. */
export const luaTexts: Plugin = {
  name: "lua-texts",
  transform: {
    filter: { id: /[\\/]src[\\/]cluster[\\/]store[\\/]scripts\.ts$/ },
    handler(code, id) {
      const whole = code.replaceAll(
        /text\(new URL\("([^"]+\.lua)", import\.meta\.url\)\)/g,
        (_, file: string) => JSON.stringify(readFileSync(path.join(path.dirname(id), file), "utf8"))
      )
      // Each text takes the one line that its reading took.
      return { code: whole, map: null }
    }
  }
}

/** A build's own facts, for code that reads them (src/admin/system/build.ts). */
export const defineBuild = (info: BuildInfo): Readonly<Record<string, string>> => ({
  GATEWAY_BUILD: JSON.stringify(info)
})

/** The service as it was built. */
export interface Service {
  readonly code: string
  readonly assets: ReadonlyMap<string, Uint8Array>
  /** The packages whose code is in it. */
  readonly packages: ReadonlyArray<Package>
}

/**
 * Writes what is not ASCII as escapes, which mean the same in texts, patterns and names: a text of ASCII alone is read in
 * half the time and takes half the memory, for as long as the service runs.
 */
const inAscii = (code: string): string =>
  code.replaceAll(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)

/** A module with all that it imports, and the modules (absolute paths) whose code is in it. */
export interface Bundle {
  readonly code: string
  readonly modules: ReadonlyArray<string>
}

/** Bundles a module of src into one. What `elsewhere` names is left to be imported from another place: `{from: to}`. */
export const bundle = async (
  input: string,
  info: BuildInfo,
  plugins: ReadonlyArray<Plugin> = [],
  elsewhere: Readonly<Record<string, string>> = {}
): Promise<Bundle> => {
  const left: Plugin = {
    name: "elsewhere",
    resolveId: (source) => elsewhere[source] === undefined ? null : { id: elsewhere[source], external: true }
  }
  const { output: [{ code, modules }] } = await build({
    cwd: root,
    input: path.join(root, "src", input),
    platform: "node",
    write: false,
    checks: { pluginTimings: false },
    plugins: [left, ...plugins],
    // The client of a store alone: the commands of its optional modules are as much code again, and are not used.
    resolve: { alias: { redis: "@redis/client" } },
    transform: { define: defineBuild(info) },
    output: {
      file: "bundle.js",
      format: "esm",
      codeSplitting: false,
      // Classes keep their names, for whoever reads a heap snapshot.
      minify: {
        compress: { keepNames: { class: true, function: false } },
        mangle: { keepNames: { class: true, function: false } }
      }
    }
  })
  return {
    code: inAscii(code),
    modules: Object.entries(modules).filter(([, module]) => module.renderedLength > 0).map(([id]) => id)
  }
}

/** Bundles the service from a module of src, in memory. Rejects with what is wrong in the sources. */
export const buildService = async (input: string, info: BuildInfo, effort: Effort): Promise<Service> => {
  const assets = new Map<string, Uint8Array>()
  const [{ code, modules }, pages] = await Promise.all([
    bundle(input, info, [swaggerPlugin(assets, effort), luaTexts]),
    builtConsole("", effort)
  ])
  if (!assets.has(swaggerAsset)) throw new Error("the script of the API's page was not found: it has moved")
  for (const [name, bytes] of pages.files) assets.set(`console/${name}`, bytes)
  const packages = packagesOf([...modules, ...pages.modules])
  assets.set(noticesAsset, Buffer.from(noticesOf(packages)))
  return { code, assets, packages }
}
