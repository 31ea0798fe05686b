// Keeps decisions from depending on a request's stats: they are written on the way, and read by the modules below alone. A decision takes
// its facts from the `Request`, or is given them as values.
import { readdirSync, readFileSync } from "node:fs"
import path from "node:path"
import { parseSync, Visitor } from "rolldown/utils"

/** Who reads stats, each with its purpose. A name that ends with a slash is a folder. */
const readers: ReadonlyMap<string, string> = new Map([
  ["completion/RequestStats.ts", "what the stats say together"],
  ["completion/AttemptsRecord.ts", "adds to what earlier attempts have written"],
  ["completion/SentPrompt.ts", "the tokens that nothing else has counted"],
  ["completion/ignored.ts", "names each path once"],
  ["completion/TryBudget.ts", "the usage of a finished try"],
  ["completion/UsageRecorder.ts", "the usage of a finished request"],
  ["http/endpointMiddleware.ts", "the headers of a reply"],
  ["server/observability/", "metrics, log lines and spans"]
])

const isReader = (file: string): boolean =>
  [...readers.keys()].some((reader) => reader.endsWith("/") ? file.startsWith(reader) : file === reader)

/** A part of the tree, as far as the rule looks at it. */
interface Part {
  readonly type: string
  readonly start: number
  readonly end: number
}

const nameOf = (part: Part & { readonly name?: unknown }): unknown => part.name

/** Whether an expression is stats by its name: `stats`, or a property of that name. */
const isStats = (part: Part & { readonly property?: Part }): boolean =>
  part.type === "Identifier"
    ? nameOf(part) === "stats"
    : part.type === "MemberExpression" && part.property !== undefined && nameOf(part.property) === "stats"

/** The reads of stats in the text of a module of src, as `file:line: rule`. */
export const statsReads = (file: string, text: string): Array<string> => {
  if (isReader(file)) return []
  const { errors, program } = parseSync(file, text)
  const problem = errors[0]
  if (problem !== undefined) throw new Error(`${file}: ${problem.message}`)
  const written = new Set<string>()
  const read: Array<Part> = []
  const placeOf = ({ end, start }: Part): string => `${start} ${end}`
  new Visitor({
    AssignmentExpression: ({ left }) => {
      written.add(placeOf(left))
    },
    UpdateExpression: ({ argument }) => {
      written.add(placeOf(argument))
    },
    MemberExpression: (node) => {
      if (isStats(node.object)) read.push(node)
    },
    VariableDeclarator: ({ id, init }) => {
      if (id.type === "ObjectPattern" && init !== null && isStats(init)) read.push(id)
    },
    ObjectPattern: (node) => {
      const type = node.typeAnnotation
      if (type && text.slice(type.start, type.end).includes("RequestStats")) read.push(node)
    }
  }).visit(program)
  return read.filter((part) => !written.has(placeOf(part))).map(({ start }) =>
    `src/${file}:${
      text.slice(0, start).split("\n").length
    }: no decision reads the stats of a request: take the fact from the ` +
    "Request or as a value (scripts/statsRules.ts)"
  )
}

/** The reads of stats in all modules of src. */
export const statsRuleViolations = (root: string): Array<string> => {
  const source = path.join(root, "src")
  return readdirSync(source, { recursive: true, encoding: "utf8" })
    .map((file) => file.replaceAll(path.sep, "/"))
    .filter((file) => file.endsWith(".ts") && !/^(?:web|testing)\//.test(file))
    .toSorted()
    .flatMap((file) => {
      const text = readFileSync(path.join(source, file), "utf8")
      return text.includes("stats") || text.includes("RequestStats") ? statsReads(file, text) : []
    })
}
