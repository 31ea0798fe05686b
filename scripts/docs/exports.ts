// The reference of what apps import: each export of an entry of the package, with its form and the beginning of its docstring.
import { readFileSync } from "node:fs"
import path from "node:path"
import { parseSync } from "rolldown/utils"
import { code, table } from "./table.ts"

const root = path.join(import.meta.dirname, "../..")

type Statement = ReturnType<typeof parseSync>["program"]["body"][number]

/** What a statement declares. */
type Declaration = Exclude<Extract<Statement, { readonly type: "ExportNamedDeclaration" }>["declaration"], null>

interface Module {
  /** Its path in the repository. */
  readonly file: string
  readonly text: string
  readonly body: ReadonlyArray<Statement>
  /** The docstring at its beginning. */
  readonly doc: string
  /** The text of the docstring that ends before a place; empty without one. */
  readonly docBefore: (at: number) => string
}

const modules = new Map<string, Module>()

const plainDoc = (comment: string): string => comment.replaceAll(/^[ \t]*\* ?/gm, "").trim()

const moduleAt = (file: string): Module => {
  const known = modules.get(file)
  if (known !== undefined) return known
  const text = readFileSync(path.join(root, file), "utf8")
  const { comments, errors, program } = parseSync(file, text)
  if (errors[0] !== undefined) throw new Error(`${file}: ${errors[0].message}`)
  const made: Module = {
    file,
    text,
    body: program.body,
    doc: comments[0]?.start === 0 && comments[0].value.startsWith("*") ? plainDoc(comments[0].value) : "",
    docBefore: (at) => {
      const doc = comments.findLast(({ end }) => end <= at)
      return doc?.type === "Block" && doc.value.startsWith("*") && text.slice(doc.end, at).trim() === ""
        ? plainDoc(doc.value)
        : ""
    }
  }
  modules.set(file, made)
  return made
}

const moduleOf = ({ file }: Module, specifier: string): Module | undefined =>
  specifier.startsWith(".") ? moduleAt(path.posix.join(path.posix.dirname(file), specifier)) : undefined

interface Found {
  readonly module: Module
  readonly declaration: Declaration
  readonly doc: string
}

const declares = (declaration: Declaration, name: string): boolean =>
  declaration.type === "VariableDeclaration"
    ? declaration.declarations.some(({ id }) => id.type === "Identifier" && id.name === name)
    : "id" in declaration && declaration.id?.type === "Identifier" && declaration.id.name === name

/** A name as it is written, which may be a text. */
const nameIn = (name: { readonly name: string } | { readonly value: string }): string =>
  "name" in name ? name.name : name.value

/** The declaration of a module's name, wherever that is. `undefined` for what comes from a package. */
const find = (module: Module, name: string): Found | undefined => {
  for (const statement of module.body) {
    const inner = statement.type === "ExportNamedDeclaration" ? statement.declaration : statement
    if (inner !== null && declares(inner as Declaration, name)) {
      return { module, declaration: inner as Declaration, doc: module.docBefore(statement.start) }
    }
    if (statement.type === "ExportNamedDeclaration" && statement.source !== null) {
      const from = statement.specifiers.find(({ exported }) => nameIn(exported) === name)
      const other = from && moduleOf(module, statement.source.value)
      if (from !== undefined && other !== undefined) return find(other, nameIn(from.local))
    }
    if (statement.type === "ImportDeclaration") {
      const from = statement.specifiers.find(({ local }) => local.name === name)
      const other = from && moduleOf(module, statement.source.value)
      if (from?.type === "ImportSpecifier" && other !== undefined) return find(other, nameIn(from.imported))
    }
  }
  return undefined
}

/** Longer forms have the names of parameters alone. */
const longestForm = 160

/** The most members that a form names. */
const mostMembers = 16

/** A type or parameters in one line, with the names of Effect's types as their modules export them. */
const short = (text: string): string =>
  text.replaceAll(/\/\*[^]*?\*\//g, "").replaceAll(/\s+/g, " ").replaceAll(/([({<[]) /g, "$1").replaceAll(
    /,? ([)}>\]])/g,
    "$1"
  )
    .replaceAll(/\bEffect\.fn\.Return</g, "Effect<").replaceAll(/\b(\w+)\.\1\b/g, "$1").replace(/^ ?\| /, "").trim()

interface Span {
  readonly start: number
  readonly end: number
}

interface FunctionNode extends Span {
  readonly params: ReadonlyArray<Span>
  readonly returnType?: { readonly typeAnnotation: Span } | null
}

const isFunction = (value: object): value is FunctionNode => "params" in value && "body" in value

/** The function that a value is, or that one of Effect's makers of functions gets. */
const functionOf = (value: object | null | undefined): FunctionNode | undefined => {
  if (value === null || value === undefined) return undefined
  if (isFunction(value)) return value
  if (!("callee" in value && "arguments" in value)) return undefined
  const [first] = value.arguments as ReadonlyArray<{ readonly type: string }>
  return first?.type === "FunctionExpression" ? functionOf(first) : undefined
}

const functionForm = (name: string, { params, returnType }: FunctionNode, text: string): string => {
  const written = params.map(({ end, start }) => short(text.slice(start, end)))
  const type = returnType?.typeAnnotation
  const form = `${name}(${written.join(", ")})${type ? `: ${short(text.slice(type.start, type.end))}` : ""}`
  if (form.length <= longestForm) return code(form)
  const names = written.map((each) => /^(?:\.\.\.)?\w+/.exec(each)?.[0] ?? "options")
  return code(`${name}(${names.join(", ")})`)
}

const listed = (what: string, names: ReadonlyArray<string>): string => {
  if (names.length === 0) return ""
  const more = names.length - mostMembers
  return `${what} ${names.slice(0, mostMembers).map(code).join(", ")}${more > 0 ? ` and ${more} more` : ""}`
}

interface Member {
  readonly key?: object
  readonly static?: boolean
  readonly optional?: boolean
  readonly accessibility?: string | null
}

/** The names of members that an app may use. */
const namesOf = (members: ReadonlyArray<Member>): Array<string> =>
  members.flatMap(({ accessibility, key, optional }) =>
    key !== undefined && "name" in key && "type" in key && key.type === "Identifier" && accessibility !== "private" &&
      key.name !== "constructor"
      ? [`${String(key.name)}${optional === true ? "?" : ""}`]
      : []
  )

/** The call within the call that makes a class of Effect: `Context.Service<Self, Shape>()("name")`. */
interface Maker extends Span {
  readonly callee: Span & {
    readonly callee?: Span
    readonly typeArguments?: {
      readonly params: ReadonlyArray<Span & { readonly type: string; readonly members?: ReadonlyArray<Member> }>
    } | null
  }
  readonly arguments: ReadonlyArray<object>
}

type Class = Extract<Declaration, { readonly type: "ClassDeclaration" | "ClassExpression" }>

const classForm = (declaration: Class, text: string): string => {
  const members = declaration.body.body as ReadonlyArray<Member>
  const statics = listed("made by", namesOf(members.filter((member) => member.static === true)))
  const own = namesOf(members.filter((member) => member.static !== true))
  const maker = declaration.superClass?.type === "CallExpression" ? declaration.superClass as Maker & object : undefined
  const made = maker?.callee.callee
  const by = made === undefined ? "" : text.slice(made.start, made.end)
  const shape = maker?.callee.typeArguments?.params[1]
  const fields = maker?.arguments.find((argument) => "properties" in argument)
  const group = declaration.superClass === null
    ? undefined
    : /^HttpApiGroup\.make\(\s*"([^"]+)"/.exec(text.slice(declaration.superClass.start, declaration.superClass.end))
      ?.[1]
  if (group !== undefined) return `group ${code(group)}`
  const parts = by.startsWith("Context.")
    ? [
      shape?.members !== undefined
        ? listed("service with", namesOf(shape.members))
        : shape?.type !== "TSTypeReference"
        ? "service"
        : `service of the type ${code(short(text.slice(shape.start, shape.end)))}`,
      statics
    ]
    : by.startsWith("Schema.")
    ? [listed(by.includes("Error") ? "error with" : "value with", [
      ...fields === undefined ? [] : namesOf(fields.properties as ReadonlyArray<Member>),
      ...own
    ])]
    : [listed("class with", own), statics]
  return parts.filter((part) => part !== "").join("; ")
}

/** The form of an export: its parameters and what it returns, or its members. */
const formOf = (name: string, own: string, { declaration, module: { text } }: Found): string => {
  switch (declaration.type) {
    case "ClassDeclaration":
      return classForm(declaration, text)
    case "TSInterfaceDeclaration":
      return [
        listed("", namesOf(declaration.body.body as ReadonlyArray<Member>)).trim(),
        ...(declaration.extends ?? []).map(({ end, start }) => `those of ${code(short(text.slice(start, end)))}`)
      ].filter((part) => part !== "").join(", ")
    case "TSTypeAliasDeclaration": {
      const type = short(text.slice(declaration.typeAnnotation.start, declaration.typeAnnotation.end))
      return type.length > longestForm ? "" : code(type)
    }
    case "FunctionDeclaration":
      return functionForm(name, declaration as FunctionNode & object, text)
    case "VariableDeclaration": {
      const found = declaration.declarations.find(({ id }) => id.type === "Identifier" && id.name === own)
      const type = found?.id.type === "Identifier" ? found.id.typeAnnotation?.typeAnnotation : undefined
      const form = type && short(text.slice(type.start, type.end))
      if (form !== undefined) return form.length > longestForm ? "" : code(form)
      const made = functionOf(found?.init)
      return made === undefined ? "" : functionForm(name, made, text)
    }
    default:
      return ""
  }
}

/** The sentences at the beginning of a docstring that say what it is. */
const longestMeaning = 240

const meaningOf = (doc: string): string => {
  const [paragraph = ""] = doc.split(/\n\s*\n|\n- /)
  const sentences = paragraph.replaceAll(/\s+/g, " ").replaceAll(/ \((?:spec|behaviour) [^)]*\)/g, "").trim().split(
    /(?<=\.) (?=[A-Z`])/
  )
  let meaning = ""
  for (const sentence of sentences) {
    if (meaning !== "" && meaning.length + sentence.length > longestMeaning) break
    meaning = meaning === "" ? sentence : `${meaning} ${sentence}`
  }
  return meaning
}

/** What the folders of the sources are about. */
const subjects: ReadonlyMap<string, string> = new Map([
  ["inProcess", "The gateway in an app"],
  ["server", "The server"],
  ["config", "Configuration"],
  ["accounts", "Accounts"],
  ["placement", "Where requests go"],
  ["upstream", "Upstreams"],
  ["completion", "Requests"],
  ["domain", "Conversations and replies"],
  ["usage", "Usage"],
  ["recordings", "Records"],
  ["cluster", "The shared store"],
  ["styles", "APIs of clients"],
  ["admin", "The admin API"],
  ["sieve", "Tool calls in text"],
  ["contracts", "Contracts"],
  ["testing", "Tests"]
])

interface Export {
  readonly subject: string
  readonly row: readonly [name: string, form: string, meaning: string]
}

const subjectOf = ({ file }: Module): string => subjects.get(file.split("/")[1] ?? "") ?? "Others"

const exportsOf = (entry: Module): ReadonlyArray<Export> =>
  entry.body.flatMap((statement): ReadonlyArray<Export> => {
    if (statement.type === "ExportAllDeclaration" && statement.exported !== null) {
      const module = moduleOf(entry, statement.source.value)!
      const names = module.body.flatMap((each) =>
        each.type === "ExportNamedDeclaration" && each.declaration?.type === "VariableDeclaration"
          ? each.declaration.declarations.flatMap(({ id }) => id.type === "Identifier" ? [id.name] : [])
          : []
      )
      const about = meaningOf(module.doc)
      return [{
        subject: subjectOf(module),
        row: [code(nameIn(statement.exported)), listed("module with", names), about]
      }]
    }
    if (statement.type !== "ExportNamedDeclaration") return []
    const names = statement.declaration === null
      ? statement.specifiers.map(({ exported }) => nameIn(exported))
      : statement.declaration.type === "VariableDeclaration"
      ? statement.declaration.declarations.flatMap(({ id }) => id.type === "Identifier" ? [id.name] : [])
      : "id" in statement.declaration && statement.declaration.id?.type === "Identifier"
      ? [statement.declaration.id.name]
      : []
    return names.map((name): Export => {
      const found = find(entry, name)
      if (found === undefined) throw new Error(`${entry.file}: the declaration of ${name} is not found`)
      const renamed = statement.specifiers.find(({ exported }) => nameIn(exported) === name)
      const own = renamed === undefined ? name : nameIn(renamed.local)
      // A class mostly is what its module is about.
      const doc = found.doc === "" && found.declaration.type === "ClassDeclaration" ? found.module.doc : found.doc
      if (doc === "") throw new Error(`${found.module.file}: ${own} is exported, and has no docstring`)
      return { subject: subjectOf(found.module), row: [code(name), formOf(name, own, found), meaningOf(doc)] }
    })
  })

/** The tables of the exports of an entry: one, or one for each subject. */
export const exportTables = (entry: string, bySubject = false) => (): string => {
  const found = exportsOf(moduleAt(`src/${entry}.ts`))
  const ofRows = (rows: ReadonlyArray<Export["row"]>) => table(["export", "form", "meaning"], rows)
  if (!bySubject) return ofRows(found.map(({ row }) => row))
  const groups = Map.groupBy(found, ({ subject }) => subject)
  return [...subjects.values()].flatMap((subject) => {
    const rows = groups.get(subject)
    return rows === undefined ? [] : [`### ${subject}\n\n${ofRows(rows.map(({ row }) => row))}`]
  }).join("\n\n")
}
