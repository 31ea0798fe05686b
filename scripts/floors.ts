// Keeps the floors of src: which folder may import which, what floor 0 may know of Effect, and that no modules import
// each other in a circle. The one thing to know: `floors` below is the table, and a new folder of src is added there.
import { existsSync, readdirSync, readFileSync } from "node:fs"
import path from "node:path"
import { parseSync, Visitor } from "rolldown/utils"

/** The floor of each folder of src, and of a folder inside one where it differs; a module imports from its own or a lower floor. */
const floors: Readonly<Record<string, number>> = {
  domain: 0,
  sieve: 0,
  contracts: 0,
  cluster: 1,
  config: 1,
  credentials: 2,
  upstream: 2,
  accounts: 3,
  placement: 3,
  recordings: 3,
  usage: 3,
  completion: 4,
  http: 5,
  styles: 5,
  admin: 5,
  server: 6,
  inProcess: 7,
  "server/cli": 7,
  // For tests of apps. Above everything, so that the product cannot contain it.
  testing: 8,
  // Runs in browsers; of the gateway it imports `consoleImports` alone.
  web: 8
}

/** The one module of src itself that is on the floor of `testing`. */
const testingEntry = "src/testing.ts"

/** The modules of the gateway that the console may import: the contract, ids and previews of keys, and how texts are written for clients. */
const consoleImports: ReadonlyArray<string> = [
  "src/api.ts",
  "src/contracts.ts",
  "src/domain/identity.ts",
  "src/domain/printed.ts"
]

/** The floor of the modules that stand in src itself: main.ts and what embedders import. */
const topFloor = 7

/** The package's own description, which says its version: the one file outside src that src may import. */
const manifest = "package.json"

/** All that floor 0 may import from outside it: modules of plain data and functions, without services, I/O or a clock. */
const pureModules: ReadonlySet<string> = new Set([
  "effect/Array",
  "effect/BigDecimal",
  "effect/BigInt",
  "effect/Boolean",
  "effect/Brand",
  "effect/Bytes",
  "effect/Chunk",
  "effect/Combiner",
  "effect/Data",
  "effect/Equal",
  "effect/Equivalence",
  "effect/Filter",
  "effect/Function",
  "effect/Hash",
  "effect/HashMap",
  "effect/HashSet",
  "effect/Iterable",
  "effect/JsonPatch",
  "effect/JsonPointer",
  "effect/JsonSchema",
  "effect/Match",
  "effect/Number",
  "effect/Option",
  "effect/Order",
  "effect/Ordering",
  "effect/Pipeable",
  "effect/Predicate",
  "effect/Record",
  "effect/Redacted",
  "effect/Reducer",
  "effect/RegExp",
  "effect/Result",
  "effect/Schema",
  "effect/SchemaAST",
  "effect/SchemaGetter",
  "effect/SchemaIssue",
  "effect/SchemaParser",
  "effect/SchemaTransformation",
  "effect/String",
  "effect/Struct",
  "effect/Symbol",
  "effect/Trie",
  "effect/Tuple",
  "effect/Types",
  "effect/UndefinedOr",
  "effect/encoding/Base64",
  "effect/encoding/Base64Url",
  "effect/encoding/Hex"
])

/** The one module of floor 0 that runs pure machines over streams, and what it may import for that. */
const streamStage = "src/domain/stream/transduce.ts"
const streamModules: ReadonlySet<string> = new Set([
  "effect/Cause",
  "effect/Channel",
  "effect/Effect",
  "effect/Pull",
  "effect/Scope",
  "effect/Stream"
])

interface Import {
  readonly specifier: string
  readonly line: number
}

/** Every module that a source text names, type imports and dynamic ones included. */
const importsOf = (file: string, text: string): Array<Import> => {
  const { errors, program } = parseSync(file, text)
  const problem = errors[0]
  if (problem !== undefined) throw new Error(`${file}: ${problem.message}`)
  const found: Array<Import> = []
  const add = (source: { readonly value?: unknown; readonly start: number } | null) => {
    if (source !== null && typeof source.value === "string") {
      found.push({ specifier: source.value, line: text.slice(0, source.start).split("\n").length })
    }
  }
  new Visitor({
    ImportDeclaration: (node) => add(node.source),
    ExportNamedDeclaration: (node) => add(node.source),
    ExportAllDeclaration: (node) => add(node.source),
    ImportExpression: (node) => add("value" in node.source ? node.source : null),
    TSImportType: (node) => add(node.source)
  }).visit(program)
  return found
}

interface Place {
  /** The folder of src that the module stands in, or undefined when it stands in src itself. */
  readonly folder: string | undefined
  readonly floor: number | undefined
  /** The folder of its style; undefined outside src/styles and for what stands in src/styles or its `shared`. */
  readonly style: string | undefined
  /** The folder of its driver, below src/upstream; undefined for what drivers share. */
  readonly driver: string | undefined
  /** The folder of its contract, or `shared`; undefined outside src/contracts and for the table of all contracts. */
  readonly contract: string | undefined
}

/** The modules of the sieve that contracts may import: how a prompt declares tools, and shows calls and results. Readers are not among them. */
const promptForm: ReadonlySet<string> = new Set([
  "src/sieve/declaration.ts",
  "src/sieve/disarm.ts",
  "src/sieve/history.ts"
])

/** What drivers share: folders below src/upstream. `embedded` answers in the protocol of another driver. */
const sharedByDrivers: ReadonlySet<string | undefined> = new Set(["server", "transports", "embedded"])

/** Folders that make a driver of several contracts' drivers, because one server speaks them all. */
const joinsDrivers: ReadonlySet<string | undefined> = new Set(["compatible"])

const placeOf = (file: string): Place => {
  const [folder, ...rest] = file.split("/").slice(1, -1)
  const inner = floors[`${folder}/${rest[0]}`]
  return {
    folder,
    floor: folder === undefined ? file === testingEntry ? floors["testing"] : topFloor : inner ?? floors[folder],
    style: folder === "styles" && rest[0] !== "shared" ? rest[0] : undefined,
    driver: folder === "upstream" && !sharedByDrivers.has(rest[0]) ? rest[0] : undefined,
    contract: folder === "contracts" ? rest[0] : undefined
  }
}

/** Why `place` may not import `specifier` from a package, or undefined when it may. */
const refusePackage = (file: string, place: Place, specifier: string): string | undefined => {
  if (specifier === "effect") return `import modules one by one ("effect/Effect"), not the whole of "effect"`
  const isPure = pureModules.has(specifier) || (file === streamStage && streamModules.has(specifier))
  if (place.floor === 0 && !isPure) {
    return `floor 0 is pure (no services, no I/O, no clock) and may not import "${specifier}"`
  }
  return undefined
}

/** Why a module at `from` may not import one at `to`, or undefined when it may. */
const refuseModule = (from: Place, to: Place, target: string): string | undefined => {
  if (from.floor !== undefined && to.floor !== undefined && to.floor > from.floor) {
    return `floor ${from.floor} may not import ${target}, which is on floor ${to.floor}`
  }
  if (from.folder === "web" && to.folder !== "web" && !consoleImports.includes(target)) {
    return `the console may import ${consoleImports.join(" and ")} alone, not ${target}`
  }
  if (from.contract !== undefined && to.contract !== undefined && ![from.contract, "shared"].includes(to.contract)) {
    return `a contract may not import another one (${target})`
  }
  if (from.folder === "contracts" && to.folder === "sieve" && !promptForm.has(target)) {
    return `a contract may not import the sieve's readers (${target})`
  }
  if (from.style !== undefined && to.style !== undefined && from.style !== to.style) {
    return `a style may not import another one (${target})`
  }
  const isJoining = joinsDrivers.has(from.driver)
  if (to.driver !== undefined && from.driver !== undefined && from.driver !== to.driver && !isJoining) {
    return `a driver may not import another one (${target})`
  }
  if (to.driver !== undefined && from.folder === "styles") return `a style may not import a driver (${target})`
  return undefined
}

/** The circles among the modules, each reported once, at the import that closes it. */
const circles = (graph: ReadonlyMap<string, ReadonlyMap<string, number>>): Array<string> => {
  const found: Array<string> = []
  const done = new Set<string>()
  const trail: Array<string> = []
  const visit = (file: string): void => {
    trail.push(file)
    for (const [target, line] of graph.get(file) ?? []) {
      const start = trail.indexOf(target)
      if (start >= 0) {
        found.push(`${file}:${line}: imports in a circle: ${[...trail.slice(start), target].join(" -> ")}`)
      } else if (!done.has(target)) {
        visit(target)
      }
    }
    trail.pop()
    done.add(file)
  }
  for (const file of graph.keys()) {
    if (!done.has(file)) visit(file)
  }
  return found
}

/**
 * What breaks the rules in `root`/src, as `file:line: reason`; empty when nothing does.
 *
 * Throws when a file cannot be parsed.
 */
export const floorViolations = (root: string): Array<string> => {
  const source = path.join(root, "src")
  const files = !existsSync(source) ? [] : readdirSync(source, { recursive: true, encoding: "utf8" })
    .filter((file) => /\.tsx?$/.test(file))
    .map((file) => path.posix.join("src", file.replaceAll(path.sep, "/")))
    .sort()
  const violations: Array<string> = []
  const graph = new Map<string, Map<string, number>>()
  for (const file of files) {
    const from = placeOf(file)
    if (from.floor === undefined) {
      violations.push(`${file}:1: src/${from.folder} is on no floor: give it one in scripts/floors.ts`)
    }
    const targets = new Map<string, number>()
    graph.set(file, targets)
    for (const { line, specifier } of importsOf(file, readFileSync(path.join(root, file), "utf8"))) {
      const report = (reason: string | undefined) => {
        if (reason !== undefined) violations.push(`${file}:${line}: ${reason}`)
      }
      if (!specifier.startsWith(".")) {
        report(refusePackage(file, from, specifier))
        continue
      }
      const target = path.posix.join(path.posix.dirname(file), specifier)
      if (target === manifest) continue
      if (!target.startsWith("src/")) {
        report(`src may not import what is outside it (${target})`)
        continue
      }
      if (!targets.has(target)) targets.set(target, line)
      report(refuseModule(from, placeOf(target), target))
    }
  }
  return [...violations, ...circles(graph)]
}
