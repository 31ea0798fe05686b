// Builds the console: `node scripts/console.ts [FOLDER]`, into node_modules/.cache/console unless told otherwise.
//
// What comes out is index.html and assets/, whose files are named by their content; beside each file stand its `.br` and
// `.gz` forms. The build fails when a file names another host, or when too much has to be loaded before the first page.
import { createHash } from "node:crypto"
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import path from "node:path"
import { brotliCompressSync, constants, gzipSync } from "node:zlib"
import { build } from "rolldown"
import type { OutputChunk } from "rolldown"

const root = path.join(import.meta.dirname, "..")
const source = path.join(root, "src/web")

/** Where the console is built for a gateway that runs from its sources. */
export const cachedConsole = path.join(root, "node_modules/.cache/console")

/** At most so many bytes, compressed by gzip, are loaded until the overview can be used. */
export const firstLoadLimit = 160_000

/** Files by their path below the console's folder. */
type Files = Map<string, Buffer>

const gzip = (bytes: Buffer): Buffer => gzipSync(bytes, { level: 9 })

/** How much work compression is: a start does not wait for the last per cent. */
export type Effort = "quick" | "best"

/** Compresses for a reader that takes `br`. */
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

/** The chunks that are loaded with a chunk: what it imports, and what that imports. */
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

const scripts = async (): Promise<ReadonlyMap<string, OutputChunk>> => {
  const { output } = await build({
    input: path.join(source, "main.tsx"),
    platform: "browser",
    write: false,
    tsconfig: path.join(source, "tsconfig.json"),
    transform: { target: "es2022" },
    // Modules of the contract that the console does not use are left out: importing them does nothing.
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

/** Without comments and indentation. */
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
  /** Those that are loaded first. */
  readonly first: ReadonlySet<string>
  /** What they were made of: paths of modules. */
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

/** What the console's files may not hold: addresses of other hosts that a browser would ask, and data in addresses. */
const foreign =
  /\b(?:src|href|action)\s*=\s*["'`]?(?:https?:|\/|data:)|url\(\s*["']?(?:https?:|\/|data:)|@import|import\(\s*["'`](?:https?:|\/)/

/** The console's files, each also as `.gz` and `.br`. */
export interface Console {
  readonly files: ReadonlyMap<string, Buffer>
  /** The first load in bytes of gzip. */
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
    if (found !== null) throw new Error(`${name} names another place: ${found[0]}`)
    const zipped = gzip(bytes)
    if (first.has(name)) size += zipped.length
    all.set(name, bytes).set(`${name}.gz`, zipped).set(`${name}.br`, brotli(bytes, effort))
  }
  if (size > firstLoadLimit) {
    throw new Error(`The console's first load is ${size} bytes of gzip; the limit is ${firstLoadLimit}`)
  }
  return { files: all, size, modules }
}

/** Builds the console into a folder, which it takes the place of. Resolves to the first load's size in bytes of gzip. */
export const buildConsole = async (folder: string): Promise<number> => {
  const { files, size } = await makeConsole("best")
  const next = `${folder}.${process.pid}.new`
  const last = `${folder}.${process.pid}.old`
  rmSync(next, { recursive: true, force: true })
  mkdirSync(path.join(next, "assets"), { recursive: true })
  for (const [name, bytes] of files) writeFileSync(path.join(next, name), bytes)
  // At no time is the folder half full.
  try {
    renameSync(folder, last)
  } catch {
    // There was none.
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
