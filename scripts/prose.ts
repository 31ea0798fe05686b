// Keeps phrases out of what people read: comments and strings of the code, titles of tests, Markdown. `node scripts/prose.ts src
// test` checks other paths than `npm run check` does.
import { readdirSync, readFileSync, statSync } from "node:fs"
import path from "node:path"
import { parseSync, Visitor } from "rolldown/utils"

const root = path.join(import.meta.dirname, "..")

/** The files and folders that `npm run check` looks at. */
const checked = [
  "README.md",
  "docs",
  "scripts",
  "packaging",
  "bench",
  "servers",
  "src",
  "test"
]

const phrases: ReadonlyArray<readonly [phrase: RegExp, advice: string]> = [
  [/\bwho(?:m|so)?ever\b|\bthose who\b|\bnobody\b/gi, "name the reader, the caller or the module"],
  [/\b(?:is|are|was|were|be|been|being) told\b/gi, "say: is notified, receives, reads"],
  [/\b(?:is|are|was|were|be) none\b/gi, "say it positively: returns undefined, is empty, does not exist"],
  [/\bnone (?:where|of which|but|to be)\b/gi, "say it positively"],
  [/\bto be had\b/gi, "say: is available, exists"],
  [/\bsuch as (?:has|have|is|are)\b/gi, "say: that has, that is"],
  [
    /\b(?:in the words of|own words|puts? into words)\b/gi,
    "say: vendor fields, in the vendor's format, as it was sent"
  ],
  [/\b(?:its|their) kin\b/gi, "list them, or say: and similar"],
  [/\bat once\b/gi, "say: immediately, or: concurrently"],
  [/\bfurther (?!than\b|off\b|behind\b)[a-z]/gi, "say: more, other, additional"],
  [/\balso (?:while|when|where|in|for)\b/gi, "say: even while, including"],
  [/\b(?:is|are) (?:that|those) of\b/gi, "repeat the noun"],
  [/\b(?:exists?|configured|there) already\b/gi, "put already before the verb"],
  [/\bbase address/gi, "say: base URL"],
  [/\bno business keys?\b/gi, "say: not a gateway key"],
  [/\blimits? of cost\b/gi, "say: cost limit"],
  [/\bon the way to\b/gi, "say: the connection, the proxy of"],
  [/\bin sum\b/gi, "say: together, in total"],
  [/\bgo(?:es)? by\b/gi, "say: goes through, uses"],
  [/\blicences?\b/gi, "say: license"]
]

/** Phrases that pages for users have other words for, the words of docs/start/concepts.md. */
const pagePhrases: typeof phrases = [
  [/\bcallers?\b/gi, "say: client, or key holder"],
  [/\bvendors?\b/gi, "say: provider, or its name"],
  [/\bbusiness keys?\b/gi, "say: gateway key"],
  [/\b(?:messages (?:API|style)|content[- ]generation)\b/g, "say: Messages API, Gemini API"]
]

/** Whether the reader of a file is a user, and not a developer. */
const isForUsers = (file: string): boolean => /^(?:README\.md|docs\/(?!contributing\/|library\/))/.test(file)

/** Names that other names have replaced, in the code of the product. */
const oldNames: ReadonlyMap<string, string> = new Map(Object.entries({
  wish: "leaseRequest",
  milder: "soonerRetry",
  isSeveral: "one map of upstreams has no such case",
  carry: "relay, pass or send",
  carried: "relayed or passed",
  told: "reported",
  modelled: "supported",
  withNative: "withVendorFields",
  Way: "ConnectionSettings",
  via: "withConnection",
  Course: "ResolvedRoute"
}))

/** A text that people read, and the line where it begins. */
interface Passage {
  readonly line: number
  readonly text: string
}

/** The lines of Markdown, without code and without the tables of `npm run docs`: their texts are in the code. */
const markdown = (text: string): Array<Passage> => {
  let fenced = false
  let made = false
  return text.split("\n").flatMap((line, i) => {
    if (/^\s*(?:```|~~~)/.test(line)) fenced = !fenced
    if (line.startsWith("<!--")) made = line.startsWith("<!-- made by")
    return fenced || made ? [] : [{ line: i + 1, text: line.replaceAll(/`[^`]*`/g, "") }]
  })
}

/** Comments to the end of the line, of shells, YAML, Lua and the like. */
const lineComments = (text: string): Array<Passage> =>
  text.split("\n").flatMap((line, i) => {
    const comment = /(?:^|\s)(?:#|--) (.*)$/.exec(line)?.[1]
    return comment === undefined ? [] : [{ line: i + 1, text: comment }]
  })

const titled = new Set(["it", "describe", "test"])

/** The name at the beginning of a callee such as `it.effect` or `it.each(cases)`. */
const calleeName = (node: { readonly type: string } & object): string | undefined => {
  if ("name" in node && typeof node.name === "string") return node.name
  const inner = "object" in node ? node.object : "callee" in node ? node.callee : "tag" in node ? node.tag : undefined
  return typeof inner === "object" && inner !== null && "type" in inner && typeof inner.type === "string"
    ? calleeName(inner as { readonly type: string })
    : undefined
}

/** The module that was parsed last: each is read twice, for its phrases and for its names. */
let last: { readonly file: string; readonly text: string; readonly parsed: ReturnType<typeof parseSync> } | undefined

const parse = (file: string, text: string): ReturnType<typeof parseSync> => {
  if (last?.file !== file || last.text !== text) last = { file, text, parsed: parseSync(file, text) }
  return last.parsed
}

/** Old names in a module, as `file:line: name: advice`. */
export const oldNamesIn = (file: string, text: string): Array<string> => {
  const found: Array<string> = []
  const add = (start: number, name: string) => {
    const advice = oldNames.get(name)
    if (advice === undefined) return
    found.push(`${file}:${text.slice(0, start).split("\n").length}: ${name}: the name is now ${advice}`)
  }
  new Visitor({
    Identifier: ({ name, start }) => add(start, name),
    PrivateIdentifier: ({ name, start }) => add(start, name)
  }).visit(parse(file, text).program)
  return found
}

/** Comments and strings of a module; with `titlesOnly`, the titles of its tests. Throws if the module cannot be parsed. */
const code = (file: string, text: string, titlesOnly: boolean): Array<Passage> => {
  const { comments, errors, program } = parse(file, text)
  const problem = errors[0]
  if (problem !== undefined) throw new Error(`${file}: ${problem.message}`)
  const found: Array<Passage> = []
  const add = (start: number, value: string) => {
    found.push({ line: text.slice(0, start).split("\n").length, text: value })
  }
  if (titlesOnly) {
    new Visitor({
      CallExpression: ({ arguments: [title], callee }) => {
        if (title?.type === "Literal" && typeof title.value === "string" && titled.has(calleeName(callee) ?? "")) {
          add(title.start, title.value)
        }
      }
    }).visit(program)
    return found
  }
  for (const { start, value } of comments) add(start, value.replaceAll(/^[ \t]*\*/gm, " "))
  new Visitor({
    Literal: ({ start, value }) => {
      if (typeof value === "string") add(start, value)
    },
    TemplateElement: ({ start, value }) => add(start, value.cooked ?? ""),
    JSXText: ({ start, value }) => add(start, value)
  }).visit(program)
  return found
}

const passagesOf = (file: string, text: string): Array<Passage> => {
  switch (path.extname(file)) {
    case ".ts":
    case ".tsx":
      return code(file, text, file.startsWith("test/") && !file.startsWith("test/support/"))
    case ".md":
      return markdown(text)
    case ".lua":
    case ".sh":
    case ".yaml":
    case ".tpl":
    case ".service":
    case ".socket":
    case "":
      return lineComments(text)
    default:
      return []
  }
}

/** The phrases in a file's text, as `file:line: "phrase": advice`. `file` is relative to the repository. */
export const phrasesIn = (file: string, text: string): Array<string> => {
  const looked = isForUsers(file) ? [...phrases, ...pagePhrases] : phrases
  return passagesOf(file, text).flatMap((passage) => {
    // A phrase that a line break divides is the same phrase.
    const joined = passage.text.replaceAll("\n", " ").replaceAll(/ {2,}/g, (spaces) => spaces.slice(0, 1))
    return looked.flatMap(([phrase, advice]) =>
      [...joined.matchAll(phrase)].map(([found]) => `${file}:${passage.line}: "${found}": ${advice}`)
    )
  })
}

const filesAt = (place: string): Array<string> => {
  if (!statSync(path.join(root, place)).isDirectory()) return [place]
  return readdirSync(path.join(root, place), { recursive: true, encoding: "utf8" })
    .map((file) => path.posix.join(place, file.replaceAll(path.sep, "/")))
    .filter((file) => !file.includes("/fixtures/") && statSync(path.join(root, file)).isFile())
}

/** The phrases in the files at `places`, by default those that `npm run check` looks at. */
export const proseViolations = (places: ReadonlyArray<string> = checked): Array<string> =>
  places.flatMap(filesAt).toSorted().flatMap((file) => {
    const text = readFileSync(path.join(root, file), "utf8")
    return [...phrasesIn(file, text), ...(/^src\/(?!web\/).*\.ts$/.test(file) ? oldNamesIn(file, text) : [])]
  })

if (import.meta.main) {
  const found = proseViolations(process.argv.length > 2 ? process.argv.slice(2) : checked)
  for (const line of found) console.log(line)
  if (found.length > 0) process.exitCode = 1
}
