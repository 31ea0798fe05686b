// Bundles the service: its code as one module, and its assets (see src/server/assets.ts) by name.
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import path from "node:path"
import { pathToFileURL } from "node:url"
import { build, type Plugin } from "rolldown"
import type { BuildInfo } from "../../src/admin/system/build.ts"
import { helpAsset } from "../../src/server/documents/helpFiles.ts"
import { brotli, type Effort, makeConsole } from "../console.ts"
import { makeHelp } from "../help/pages.ts"
import { noticesOf, type Package, packagesOf } from "./packages.ts"

const root = path.join(import.meta.dirname, "../..")

/** The asset that `model-gateway licenses` prints. */
export const noticesAsset = "THIRD_PARTY_LICENSES.txt"

const swaggerAsset = "swagger.json.br"

/** Memoizes by key and effort, because a release needs the same assets several times. */
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

/** The pages of /help, compressed together. */
export const compressHelp = kept(async (_, effort) => brotli(Buffer.from(JSON.stringify(makeHelp())), effort))

const builtConsole = kept((_, effort) => makeConsole(effort))

/** Moves Swagger UI, which is larger than all other code, into a compressed asset. */
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

const yamlAsset = "yaml.js.br"

const compressYaml = kept(async (file, effort) => {
  const { output: [{ code }] } = await build({
    cwd: root,
    input: path.join(path.dirname(file), "../browser/dist/index.js"),
    write: false,
    checks: { pluginTimings: false },
    output: { format: "iife", name: "YAML", minify: true }
  })
  return brotli(Buffer.from(code), effort)
})

/** Moves the parser of YAML, which the command `import` alone uses, into a compressed asset. */
const yamlPlugin = (assets: Map<string, Uint8Array>, effort: Effort): Plugin => ({
  name: "yaml",
  load: {
    filter: { id: /[\\/]yaml[\\/]dist[\\/]index\.js$/ },
    async handler(id) {
      assets.set(yamlAsset, await compressYaml(id, effort))
      return {
        code: `
          import { brotliDecompressSync } from "node:zlib"
          import { builtAssets } from ${JSON.stringify(path.join(root, "src/server/assets.ts"))}
          const code = brotliDecompressSync(builtAssets().get("${yamlAsset}")).toString()
          export const { isScalar, LineCounter, parseDocument, visit } = new Function(code + "\\nreturn YAML")()
        `,
        moduleType: "js"
      }
    }
  }
})

const parserAsset = "llhttp.wasm.br"

const compressParser = kept(async (file, effort) => brotli(createRequire(file)(file) as Buffer, effort))

/** Moves the parser of HTTP for processors without vector instructions, which few machines use, into a compressed asset. */
const parserPlugin = (assets: Map<string, Uint8Array>, effort: Effort): Plugin => ({
  name: "parser",
  load: {
    filter: { id: /[\\/]undici[\\/]lib[\\/]llhttp[\\/]llhttp-wasm\.js$/ },
    async handler(id) {
      assets.set(parserAsset, await compressParser(id, effort))
      return {
        code: `
          const { brotliDecompressSync } = require("node:zlib")
          const { builtAssets } = require(${JSON.stringify(path.join(root, "src/server/assets.ts"))})
          module.exports = brotliDecompressSync(builtAssets().get("${parserAsset}"))
        `,
        moduleType: "js"
      }
    }
  }
})

/** A Lua script without comment lines, empty lines and indentation. No script has a text of several lines. */
const plainLua = (lua: string): string =>
  lua.split("\n").map((line) => line.trim()).filter((line) => line !== "" && !line.startsWith("--")).join("\n")

/** Replaces each read of a Lua script by the script's text. */
export const luaTexts: Plugin = {
  name: "lua-texts",
  transform: {
    filter: { id: /[\\/]src[\\/].*\.ts$/, code: /\.lua"/ },
    handler(code, id) {
      const whole = code.replaceAll(
        /text\(new URL\("([^"]+\.lua)", import\.meta\.url\)\)/g,
        (_, file: string) => JSON.stringify(plainLua(readFileSync(path.join(path.dirname(id), file), "utf8")))
      )
      // Each text stays on one line, so line numbers do not change.
      return { code: whole, map: null }
    }
  }
}

/** Throws where a package loads a module that the service never uses, such as a parser behind an environment variable. */
const absent = "throw new Error(\"This module is not in the bundle\")"

/** What the service needs of `undici`. */
const undici = `
  const Dispatcher = require("./lib/dispatcher/dispatcher")
  Object.assign(Dispatcher.prototype, require("./lib/api"))
  exports.Dispatcher = Dispatcher
  exports.Agent = require("./lib/dispatcher/agent")
  exports.EnvHttpProxyAgent = require("./lib/dispatcher/env-http-proxy-agent")
  exports.buildConnector = require("./lib/core/connect")
  exports.errors = require("./lib/core/errors")
  exports.getGlobalDispatcher = require("./lib/global").getGlobalDispatcher
`

/** The values that a module imports from `undici` and that the service does not have. Bundlers take them for `undefined`. */
export const missingOfUndici = (code: string): ReadonlyArray<string> =>
  [...code.matchAll(/import \{([^}]*)\} from "@effect\/platform-node\/Undici"/g)]
    .flatMap(([, names = ""]) => names.split(",").map((name) => name.trim()))
    .filter((name) => name !== "" && !name.startsWith("type ") && !undici.includes(`exports.${name} =`))

/** Throws where a module of src needs more of `undici`. */
const undiciPlugin: Plugin = {
  name: "undici",
  transform: {
    filter: { id: /[\\/]src[\\/].*\.ts$/, code: /platform-node\/Undici"/ },
    handler(code, id) {
      const missing = missingOfUndici(code)
      if (missing.length > 0) {
        throw new Error(`${id} imports ${missing.join(", ")}, which its part of undici lacks`)
      }
      return null
    }
  }
}

/**
 * Modules of packages, by the end of their paths, that the service needs only in part. Each exports all of
 * its package, so the bundler cannot leave out the rest: browser APIs, mocks and caches of `undici`; clusters, sentinels,
 * OpenTelemetry and most commands of the Redis client; the client and the compression of `ws`.
 */
const narrowed: ReadonlyArray<readonly [path: RegExp, code: string]> = [
  [/[\\/]undici[\\/]index\.js$/, undici],
  [/[\\/]undici[\\/]lib[\\/](?:milo|web)[\\/]/, absent],
  [
    /[\\/]@redis[\\/]client[\\/]dist[\\/]index\.js$/,
    `
      exports.createClient = require("./lib/client").default.create
      exports.SocketTimeoutError = require("./lib/errors").SocketTimeoutError
    `
  ],
  [
    // The commands that the client itself sends. The gateway sends its own as texts.
    /[\\/]@redis[\\/]client[\\/]dist[\\/]lib[\\/]commands[\\/]index\.js$/,
    `
      exports.__esModule = true
      exports.default = {
        AUTH: require("./AUTH").default,
        CLIENT_SETNAME: require("./CLIENT_SETNAME").default,
        READONLY: require("./READONLY").default
      }
      exports.NON_STICKY_COMMANDS = {}
    `
  ],
  // What the client caches of which command; the gateway uses no cache of the client.
  [
    /[\\/]@redis[\\/]client[\\/]dist[\\/]lib[\\/]command-metadata[\\/]command-metadata-data\.js$/,
    "exports.__esModule = true\nexports.COMMAND_METADATA = {}"
  ],
  // The gateway opens no web socket itself.
  [
    /[\\/]ws[\\/]wrapper\.mjs$/,
    `
      export { default as WebSocketServer } from "./lib/websocket-server.js"
      export const WebSocket = undefined
    `
  ],
  // The server offers no compression, which is the default of `ws`. Its other modules look for the name in what a connection has.
  [/[\\/]ws[\\/]lib[\\/]permessage-deflate\.js$/, "exports.extensionName = \"permessage-deflate\""],
  [/[\\/]@opentelemetry[\\/]api[\\/]/, absent]
]

const narrowPlugin: Plugin = {
  name: "narrow",
  load: {
    filter: { id: narrowed.map(([path]) => path) },
    handler: (id) => narrowed.find(([path]) => path.test(id))?.[1]
  }
}

/** A build's own facts, for code that reads them (src/admin/system/build.ts). */
export const defineBuild = (info: BuildInfo): Readonly<Record<string, string>> => ({
  GATEWAY_BUILD: JSON.stringify(info)
})

/** A built service. */
export interface Service {
  readonly code: string
  readonly assets: ReadonlyMap<string, Uint8Array>
  /** The modules (absolute paths) whose code is in it, without the console's. */
  readonly modules: ReadonlyArray<string>
  /** The packages whose code is in it. */
  readonly packages: ReadonlyArray<Package>
}

/**
 * Escapes all characters outside ASCII, which is equivalent in strings, patterns and names. V8 parses an ASCII source in half the time
 * and keeps it in half the memory.
 */
const inAscii = (code: string): string =>
  code.replaceAll(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)

/** A bundled module, and the modules (absolute paths) whose code it contains. */
export interface Bundle {
  readonly code: string
  readonly modules: ReadonlyArray<string>
}

/** Bundles a module of src and its imports. Imports in `elsewhere` (`{from: to}`) stay imports, from `to`. */
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
    plugins: [left, narrowPlugin, undiciPlugin, ...plugins],
    // The client of a store alone: the commands of its optional modules are as much code again, and are not used.
    resolve: { alias: { redis: "@redis/client" } },
    transform: { define: defineBuild(info) },
    output: {
      file: "bundle.js",
      format: "esm",
      codeSplitting: false,
      // Heap snapshots show class names.
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

/** Bundles the service from a module of src, in memory. Rejects with the errors in the sources. */
export const buildService = async (input: string, info: BuildInfo, effort: Effort): Promise<Service> => {
  const assets = new Map<string, Uint8Array>()
  const [{ code, modules }, pages, help] = await Promise.all([
    bundle(input, info, [
      swaggerPlugin(assets, effort),
      yamlPlugin(assets, effort),
      parserPlugin(assets, effort),
      luaTexts
    ]),
    builtConsole("", effort),
    compressHelp("", effort)
  ])
  if (!assets.has(yamlAsset)) throw new Error("the parser of YAML was not found: its module has moved")
  if (!assets.has(parserAsset)) throw new Error("the parser of HTTP was not found in undici: its module has moved")
  if (!assets.has(swaggerAsset)) throw new Error("Swagger UI was not found in effect: its module has moved")
  for (const [name, bytes] of pages.files) assets.set(`console/${name}`, bytes)
  assets.set(helpAsset, help)
  const packages = packagesOf([...modules, ...pages.modules])
  assets.set(noticesAsset, Buffer.from(noticesOf(packages)))
  return { code, assets, modules, packages }
}
