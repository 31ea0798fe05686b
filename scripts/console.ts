// Builds the console: `node scripts/console.ts [FOLDER]`, by default into node_modules/.cache/console.
//
// The result is index.html and assets/, whose files are named by their content, each with its `.br` and `.gz` forms beside it.
// The build fails when a file refers to another host, or when the first load exceeds its limit.
import { createHash } from "node:crypto"
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import path from "node:path"
import { brotliCompressSync, constants, gzipSync } from "node:zlib"
import { build } from "rolldown"
import type { OutputChunk, Plugin } from "rolldown"

const root = path.join(import.meta.dirname, "..")
const source = path.join(root, "src/web")

/** The folder of the console for a gateway that runs from its sources. */
export const cachedConsole = path.join(root, "node_modules/.cache/console")

/** The limit of the first load, everything that the overview needs, in bytes of gzip. */
export const firstLoadLimit = 160_000

/** Files by their path below the console's folder. */
type Files = Map<string, Buffer>

const gzip = (bytes: Buffer): Buffer => gzipSync(bytes, { level: 9 })

/** The effort of compression: quick at a start, best for a release. */
export type Effort = "quick" | "best"

/** Compresses by Brotli, for clients that accept `br`. */
export const brotli = (bytes: Buffer, effort: Effort): Buffer =>
  brotliCompressSync(bytes, {
    params: {
      [constants.BROTLI_PARAM_QUALITY]: effort === "best" ? constants.BROTLI_MAX_QUALITY : 5,
      [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS,
      [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length
    }
  })

const hashed = (name: string, bytes: Buffer): string => {
  const { ext, name: stem } = path.parse(name)
  return `assets/${stem}-${createHash("sha256").update(bytes).digest("hex").slice(0, 10)}${ext}`
}

/** The chunks that are loaded with a chunk: its imports, and theirs. */
const loadedWith = (chunk: OutputChunk, chunks: ReadonlyMap<string, OutputChunk>): Set<string> => {
  const loaded = new Set<string>()
  const visit = (name: string) => {
    if (loaded.has(name)) return
    loaded.add(name)
    for (const next of chunks.get(name)?.imports ?? []) visit(next)
  }
  visit(chunk.fileName)
  return loaded
}

/** Texts of the contract that only its documents show. */
const shownInDocuments = new Set(["description", "summary"])

interface Parsed {
  readonly type: string
  readonly start: number
  readonly end: number
}

const isParsed = (value: unknown): value is Parsed =>
  typeof value === "object" && value !== null && "type" in value && "start" in value

/** The places of the texts below a part of a module that only documents show. */
function* textsIn(node: object): Generator<Parsed> {
  const { key, type, value } = node as {
    readonly type?: string
    readonly key?: { readonly name?: string }
    readonly value?: unknown
  }
  if (type === "Property" && shownInDocuments.has(key?.name ?? "") && isParsed(value)) {
    if (["Literal", "TemplateLiteral", "BinaryExpression"].includes(value.type)) return yield value
  }
  for (const part of Object.values(node)) if (typeof part === "object" && part !== null) yield* textsIn(part)
}

/** Leaves out what the documents say about the contract: a twentieth of the first load. */
const withoutDocuments: Plugin = {
  name: "without documents",
  transform: {
    filter: { id: /\/src\/(?:admin|config|styles)\/(?:.*\/)?(?:Api|contract|schema)\.ts$/ },
    handler(code) {
      let [kept, from] = ["", 0]
      for (const { end, start } of textsIn(this.parse(code, { lang: "ts" }))) {
        kept += `${code.slice(from, start)}""`
        from = end
      }
      return { code: kept + code.slice(from), moduleType: "ts" }
    }
  }
}

const scripts = async (): Promise<ReadonlyMap<string, OutputChunk>> => {
  const { output } = await build({
    plugins: [withoutDocuments],
    input: path.join(source, "main.tsx"),
    platform: "browser",
    write: false,
    tsconfig: path.join(source, "tsconfig.json"),
    transform: { target: "es2022" },
    onLog: (level, log, handle) => {
      if (log.code === "UNRESOLVED_IMPORT") {
        throw new Error(`The console would import what no browser has: ${log.message}`)
      }
      handle(level, log)
    },
    // Leaves out modules of the contract that the console does not use: importing them has no side effect.
    treeshake: { moduleSideEffects: false },
    output: {
      format: "esm",
      minify: true,
      entryFileNames: "assets/[name]-[hash].js",
      chunkFileNames: "assets/[name]-[hash].js"
    }
  })
  return new Map(output.filter((part) => part.type === "chunk").map((chunk) => [chunk.fileName, chunk]))
}

/** The style sheet, without comments and indentation. */
const style = (): Buffer =>
  Buffer.from(
    ["node_modules/uplot/dist/uPlot.min.css", "src/web/style.css"]
      .map((file) => readFileSync(path.join(root, file), "utf8"))
      .join("\n")
      .replaceAll(/\/\*[^]*?\*\//g, "")
      .replaceAll(/\n\s*/g, "\n")
      .trim()
  )

interface Made {
  readonly files: Files
  /** The files of the first load. */
  readonly first: ReadonlySet<string>
  /** The modules (absolute paths) whose code is in the files. */
  readonly modules: ReadonlyArray<string>
}

const make = async (): Promise<Made> => {
  const files: Files = new Map()
  const chunks = await scripts()
  for (const [name, { code }] of chunks) files.set(name, Buffer.from(code))
  const entry = [...chunks.values()].find((chunk) => chunk.isEntry)
  if (entry === undefined) throw new Error("The console's scripts have no entry")
  const loaded = loadedWith(entry, chunks)

  const named = new Map<string, string>()
  for (
    const [file, bytes] of [["style.css", style()], ["icon.svg", readFileSync(path.join(source, "icon.svg"))]] as const
  ) {
    const name = hashed(file, bytes)
    files.set(name, bytes)
    named.set(file, name)
  }
  const preloads = [...loaded].filter((name) => name !== entry.fileName)
    .map((name) => `<link rel="modulepreload" href="${name}">\n`).join("")
  const html = readFileSync(path.join(source, "index.html"), "utf8")
    .replace("<!-- preloads -->\n", () => preloads)
    .replace("main.tsx", entry.fileName)
    .replace("style.css", named.get("style.css")!)
    .replace("icon.svg", named.get("icon.svg")!)
  files.set("index.html", Buffer.from(html))
  return {
    files,
    first: new Set(["index.html", ...named.values(), ...loaded]),
    modules: [...chunks.values()].flatMap(({ modules }) =>
      Object.entries(modules).filter(([, { renderedLength }]) => renderedLength > 0).map(([id]) => id)
    )
  }
}

/** Matches what the console's files may not contain: addresses of other hosts that a browser would request, and data URLs. */
const foreign =
  /\b(?:src|href|action)\s*=\s*["'`]?(?:https?:|\/|data:)|url\(\s*["']?(?:https?:|\/|data:)|@import|import\(\s*["'`](?:https?:|\/)/

/** The console's files, each also as `.gz` and `.br`. */
export interface Console {
  readonly files: ReadonlyMap<string, Buffer>
  /** The first load, in bytes of gzip. */
  readonly size: number
  /** The modules (absolute paths) whose code is in it. */
  readonly modules: ReadonlyArray<string>
}

/** Builds the console in memory. */
export const makeConsole = async (effort: Effort): Promise<Console> => {
  const { files, first, modules } = await make()
  const all: Files = new Map()
  let size = 0
  for (const [name, bytes] of files) {
    const found = foreign.exec(bytes.toString())
    if (found !== null) throw new Error(`${name} refers to another host: ${found[0]}`)
    const zipped = gzip(bytes)
    if (first.has(name)) size += zipped.length
    all.set(name, bytes).set(`${name}.gz`, zipped).set(`${name}.br`, brotli(bytes, effort))
  }
  if (size > firstLoadLimit) {
    throw new Error(`The console's first load is ${size} bytes of gzip; the limit is ${firstLoadLimit}`)
  }
  return { files: all, size, modules }
}

/** Builds the console into a folder, replacing it. Resolves to the size of the first load in bytes of gzip. */
export const buildConsole = async (folder: string): Promise<number> => {
  const { files, size } = await makeConsole("best")
  const next = `${folder}.${process.pid}.new`
  const last = `${folder}.${process.pid}.old`
  rmSync(next, { recursive: true, force: true })
  mkdirSync(path.join(next, "assets"), { recursive: true })
  for (const [name, bytes] of files) writeFileSync(path.join(next, name), bytes)
  // Renames, so that the folder is complete at all times.
  try {
    renameSync(folder, last)
  } catch {
    // The folder did not exist.
  }
  renameSync(next, folder)
  rmSync(last, { recursive: true, force: true })
  return size
}

if (import.meta.main) {
  const folder = process.argv[2] ?? cachedConsole
  const size = await buildConsole(folder)
  console.log(`Console: ${size} bytes of gzip until the first page`)
}
