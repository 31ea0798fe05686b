// Counts what each entry of the package loads of src: the modules that its own module imports, and theirs. Imports of types alone and calls of
// `import()` load nothing. `node scripts/loads.ts` prints all entries.
import { readFileSync } from "node:fs"
import path from "node:path"
import { parseSync, Visitor } from "rolldown/utils"

const root = path.join(import.meta.dirname, "..")

interface Named {
  readonly importKind?: unknown
  readonly exportKind?: unknown
}

const isType = ({ exportKind, importKind }: Named): boolean => importKind === "type" || exportKind === "type"

const known = new Map<string, { readonly targets: ReadonlyArray<string>; readonly lines: number }>()

/** The modules of src that a module loads when it is loaded, and its lines. Reads each module once. */
const read = (file: string): { readonly targets: ReadonlyArray<string>; readonly lines: number } => {
  const before = known.get(file)
  if (before !== undefined) return before
  const text = readFileSync(path.join(root, file), "utf8")
  const found: Array<string> = []
  const add = (
    node: Named & { readonly source: { readonly value: unknown } | null; readonly specifiers?: ReadonlyArray<Named> }
  ) => {
    const { source, specifiers = [] } = node
    if (typeof source?.value !== "string" || !source.value.startsWith(".") || isType(node)) return
    if (specifiers.length > 0 && specifiers.every(isType)) return
    found.push(path.posix.join(path.posix.dirname(file), source.value))
  }
  new Visitor({
    ImportDeclaration: (node) => add(node as never),
    ExportNamedDeclaration: (node) => add(node as never),
    ExportAllDeclaration: (node) => add(node as never)
  }).visit(parseSync(file, text).program)
  const module = { targets: found.filter((target) => target.startsWith("src/")), lines: text.split("\n").length - 1 }
  known.set(file, module)
  return module
}

/** What an entry loads. */
export interface Loads {
  readonly files: ReadonlyArray<string>
  readonly lines: number
  /** The folders of src, without the modules that stand in src itself. */
  readonly folders: ReadonlyArray<string>
}

/** What a module of src loads, itself included. `entry`: its path, such as `src/sieve.ts`. */
export const loadsOf = (entry: string): Loads => {
  const files = new Set([entry])
  let lines = 0
  for (const file of files) {
    const module = read(file)
    lines += module.lines
    for (const target of module.targets) files.add(target)
  }
  const folders = new Set([...files].map((file) => file.split("/")[1]!).filter((name) => !/\.tsx?$/.test(name)))
  return { files: [...files], lines, folders: [...folders].toSorted() }
}

/** The entries of the package, by the modules of src that they are built of. */
export const entries: ReadonlyArray<string> = Object.values(
  (JSON.parse(readFileSync(path.join(root, "package.json"), "utf8")) as {
    readonly exports: Readonly<Record<string, { readonly default?: string }>>
  }).exports
).flatMap(({ default: built }) => built === undefined ? [] : `src/${path.basename(built, ".js")}.ts`)

if (import.meta.main) {
  for (const entry of [...entries, "src/main.ts", "src/server/cli/program.ts", "src/server/cli/commands.ts"]) {
    const { files, folders, lines } = loadsOf(entry)
    process.stdout.write(`${entry}: ${files.length} files, ${lines} lines of ${folders.join(", ")}\n`)
  }
}
