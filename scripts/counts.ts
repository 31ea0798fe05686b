// Counts what the design of src bounds: names of contracts where facts belong, optional members, long files, files that a streamed chat passes.
// Each has a ceiling below, which only falls: a change that lowers a count lowers its ceiling too. `node scripts/counts.ts` prints the counts.
import { execFile } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import path from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { parseSync, Visitor } from "rolldown/utils"

/** The most of each count. */
const ceilings = {
  "names of contracts": 0,
  "optional members": 316,
  "long files": 7,
  "files down": 35,
  "files up": 12
}

/** Where each count has what it counts. */
type Counts = { readonly [Name in keyof typeof ceilings]: ReadonlyArray<string> }

/** Names of contracts, styles and drivers. */
const names: ReadonlySet<string> = new Set([
  "chat",
  "responses",
  "messages",
  "generate",
  "session",
  "openai",
  "embedded"
])

/**
 * Who may know contracts by name: they themselves, styles, drivers and their table, the configuration's schema and what writes configurations
 * from the files of other gateways, the console and what tests of apps use.
 */
const knowsNames =
  /^src\/(?:contracts\/|styles\/|upstream\/(?:compatible|openai|responses|messages|generate|session|embedded)\/|upstream\/protocols\.ts$|config\/schema\.ts$|server\/cli\/import\/|web\/|testing)/

/** Words that are spelled like a contract's name and mean something else, each where it has that meaning. */
const otherWords: ReadonlyArray<readonly [name: string, means: string, files: ReadonlyArray<string>]> = [
  ["session", "a login to the console", ["admin/auth/AdminAuth.ts", "server/documents/document.ts", "usage/Change.ts"]],
  ["session", "a client's session, by which use is counted and requests are searched", [
    "admin/requests/facets.ts",
    "recordings/search.ts",
    "usage/UsageEntry.ts",
    "usage/UsageQuery.ts"
  ]],
  ["session", "the phase of an exchange before its completion", [
    "domain/UpstreamFailure.ts",
    "upstream/server/ServerClient.ts",
    "upstream/server/serverLists.ts",
    "admin/upstreams/UpstreamTests.ts"
  ]],
  ["responses", "a group of settings", ["admin/settings/Api.ts", "config/importConfig.ts", "config/settings.ts"]],
  ["responses", "a value of a setting of Codex", ["server/cli/agents/clients.ts"]],
  ["openai", "a value of a setting of Qwen Code", ["server/cli/agents/clients.ts"]],
  ["chat", "an operation of OpenTelemetry's conventions", [
    "completion/attemptSpan.ts",
    "server/observability/requestMetrics.ts"
  ]],
  ["generate", "a field that asks for a new key", ["config/entries/Keys.ts"]],
  ["embedded", "the key of requests from within the process", ["domain/usageNames.ts"]]
]

/** Keys of one object that make it a table by contract. */
const fewestKeys = 2

/** Lines of a long file. */
const longest = 450

/** Texts and data, which are as long as what they say: the words of the console, the Schema of the configuration. */
const isText = /^src\/(?:web\/texts\/|config\/schema\.ts$)/

const optionalMember = /^\s+(?:readonly )?\w+\?:/gm

interface Source {
  readonly file: string
  readonly text: string
}

interface Key {
  readonly name?: unknown
  readonly value?: unknown
}

const nameOf = (key: Key): unknown => typeof key.name === "string" ? key.name : key.value

/** The types whose second argument is fields of the first. */
const fieldsOfType: ReadonlySet<string> = new Set(["Pick", "Omit"])

/**
 * The names of contracts in a module: its string literals, and the keys of objects and types that are tables by contract. The fields of a type
 * by which another one is made of it (`Type["field"]`, `Pick<Type, "field">`) are no names.
 */
export const contractNames = (file: string, text: string): Array<string> => {
  const { errors, program } = parseSync(file, text)
  const problem = errors[0]
  if (problem !== undefined) throw new Error(`${file}: ${problem.message}`)
  const found: Array<readonly [at: number, name: string]> = []
  const table = (keys: ReadonlyArray<Key & { readonly start: number }>) => {
    const named = keys.filter((key) => names.has(String(nameOf(key))))
    if (named.length < fewestKeys) return
    for (const key of named) if (typeof key.name === "string") found.push([key.start, key.name])
  }
  const ofTypes: Array<readonly [start: number, end: number]> = []
  new Visitor({
    Literal: (node) => {
      if (typeof node.value === "string" && names.has(node.value)) found.push([node.start, node.value])
    },
    TSIndexedAccessType: ({ indexType }) => {
      ofTypes.push([indexType.start, indexType.end])
    },
    TSTypeReference: ({ typeArguments, typeName }) => {
      const fields = typeArguments?.params[1]
      if (fields !== undefined && typeName.type === "Identifier" && fieldsOfType.has(typeName.name)) {
        ofTypes.push([fields.start, fields.end])
      }
    },
    ObjectExpression: (node) =>
      table(
        node.properties.flatMap((property) =>
          property.type === "Property" ? [property.key as Key & { start: number }] : []
        )
      ),
    TSTypeLiteral: (node) =>
      table(
        node.members.flatMap((member) =>
          member.type === "TSPropertySignature" ? [member.key as Key & { start: number }] : []
        )
      ),
    TSInterfaceBody: (node) =>
      table(
        node.body.flatMap((member) =>
          member.type === "TSPropertySignature" ? [member.key as Key & { start: number }] : []
        )
      )
  }).visit(program)
  const isNamed = ([at]: readonly [number, string]) => !ofTypes.some(([start, end]) => start <= at && at < end)
  return found.filter(isNamed).toSorted(([a], [b]) => a - b).map(([at, name]) =>
    `${file}:${text.slice(0, at).split("\n").length}: ${name}`
  )
}

/** Names without other words. Throws for one that is no longer where `otherWords` has it. */
const withoutOtherWords = (places: ReadonlyArray<string>): Array<string> => {
  const isAt = (place: string, name: string, file: string) =>
    place.startsWith(`src/${file}:`) && place.endsWith(`: ${name}`)
  for (const [name, means, files] of otherWords) {
    const gone = files.find((file) => !places.some((place) => isAt(place, name, file)))
    if (gone !== undefined) throw new Error(`scripts/counts.ts: src/${gone} no longer has "${name}" for ${means}`)
  }
  return places.filter((place) => !otherWords.some(([name, , files]) => files.some((file) => isAt(place, name, file))))
}

const sourcesOf = (root: string): ReadonlyArray<Source> =>
  readdirSync(path.join(root, "src"), { recursive: true, encoding: "utf8" })
    .filter((file) => /\.tsx?$/.test(file))
    .map((file) => path.posix.join("src", file.replaceAll(path.sep, "/")))
    .toSorted()
    .map((file) => ({ file, text: readFileSync(path.join(root, file), "utf8") }))

const linesOf = (text: string): number => text.split("\n").length - 1

const run = promisify(execFile)

/** What is counted, each with where it is. */
const countsOf = async (root: string, signal?: AbortSignal): Promise<Counts> => {
  const sources = sourcesOf(root)
  const passed = await run(process.execPath, [path.join(import.meta.dirname, "passedFiles.ts")], { cwd: root, signal })
  const { down, up } = JSON.parse(passed.stdout) as { readonly [way: string]: ReadonlyArray<string> }
  return {
    "names of contracts": withoutOtherWords(
      sources.filter(({ file }) => !knowsNames.test(file)).flatMap(({ file, text }) => contractNames(file, text))
    ),
    "optional members": sources.filter(({ file }) => !file.startsWith("src/web/")).flatMap(({ file, text }) =>
      [...text.matchAll(optionalMember)].map(({ 0: member, index }) =>
        `${file}:${text.slice(0, index).split("\n").length}: ${member.trim()}`
      )
    ),
    "long files": sources.filter(({ file, text }) => !isText.test(file) && linesOf(text) > longest).map((
      { file, text }
    ) => `${file}: ${linesOf(text)} lines`),
    "files down": down ?? [],
    "files up": up ?? []
  }
}

/** Lines by folder of src, the largest first. */
const linesByFolder = (root: string): ReadonlyArray<readonly [folder: string, lines: number]> => {
  const lines = new Map<string, number>()
  for (const { file, text } of sourcesOf(root)) {
    const folder = file.split("/").slice(0, -1).slice(0, 2).join("/")
    lines.set(folder, (lines.get(folder) ?? 0) + linesOf(text))
  }
  return [...lines].toSorted(([, a], [, b]) => b - a)
}

/** Files of src by how many of what is counted are there. */
const byFile = (places: ReadonlyArray<string>): string =>
  [...Map.groupBy(places, (place) => place.split(":")[0])].map(([file, all]) => `  ${all.length} ${file}`).join("\n")

/** Counts above their ceilings, and ceilings above their counts. */
export const countViolations = (counts: Counts, most: { readonly [Name in keyof Counts]: number }): Array<string> =>
  (Object.keys(most) as Array<keyof Counts>).flatMap((name) => {
    const places = counts[name]
    if (places.length === most[name]) return []
    return places.length > most[name]
      ? [`scripts/counts.ts: ${name}: ${places.length} where ${most[name]} are the most\n${byFile(places)}`]
      : [`scripts/counts.ts: ${name}: lower the ceiling from ${most[name]} to ${places.length}`]
  })

/** What is counted against the ceilings of this repository. */
export const countedViolations = async (root: string, signal?: AbortSignal): Promise<Array<string>> =>
  countViolations(await countsOf(root, signal), ceilings)

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const root = path.join(import.meta.dirname, "..")
  for (const [name, places] of Object.entries(await countsOf(root))) {
    console.log(`${name}: ${places.length}\n${byFile(places)}`)
  }
  console.log("lines")
  for (const [folder, lines] of linesByFolder(root)) console.log(`  ${lines} ${folder}`)
}
