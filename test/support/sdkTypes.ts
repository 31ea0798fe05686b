/**
 * The object types of a vendor's SDK, read from its declaration files, for tests that compare them with the tables of the vendors'
 * fields.
 */
import { existsSync, readFileSync } from "node:fs"
import path from "node:path"
import { type ESTree, parseSync, Visitor } from "rolldown/utils"

const modules = path.join(import.meta.dirname, "../../node_modules")

type Node = ESTree.TSType

/** A type where it stands: names in it are looked up in the namespaces around it. */
export interface Placed {
  readonly file: string
  readonly scope: ReadonlyArray<string>
  readonly node: Node
}

interface Declared {
  readonly scope: ReadonlyArray<string>
  readonly fields: ReadonlyMap<string, Node>
  readonly parents: ReadonlyArray<string>
  /** Of an alias. */
  readonly node: Node | undefined
}

interface Declarations {
  readonly types: ReadonlyMap<string, Declared>
  /** Files by the names under which they are imported. */
  readonly imports: ReadonlyMap<string, string>
}

/** An object type. */
export interface Shape {
  readonly name: string
  readonly fields: ReadonlyMap<string, Placed>
}

const nameOf = (name: ESTree.TSTypeName | ESTree.Expression): string =>
  name.type === "TSQualifiedName"
    ? `${nameOf(name.left)}.${name.right.name}`
    : name.type === "Identifier"
    ? name.name
    : ""

const members = (body: ReadonlyArray<ESTree.TSSignature>): ReadonlyMap<string, Node> => {
  const fields = new Map<string, Node>()
  for (const member of body) {
    if (member.type !== "TSPropertySignature") continue
    const type = member.typeAnnotation?.typeAnnotation
    if (type === undefined) continue
    const { key } = member
    const name = key.type === "Identifier" ? key.name : key.type === "Literal" ? String(key.value) : undefined
    if (name !== undefined) fields.set(name, type)
  }
  return fields
}

const read = (file: string): Declarations => {
  const { errors, program } = parseSync(file, readFileSync(path.join(modules, file), "utf8"))
  if (errors.length > 0) throw new Error(`${file} cannot be parsed`)
  const types = new Map<string, Declared>()
  const imports = new Map<string, string>()
  const scope: Array<string> = []
  const add = (name: string, declared: Omit<Declared, "scope">) => {
    const full = [...scope, name].join(".")
    const before = types.get(full)
    // Declarations of one name are merged, as in TypeScript.
    const fields = new Map([...before?.fields ?? [], ...declared.fields])
    types.set(full, { ...declared, fields, scope: [...scope] })
  }
  new Visitor({
    ImportDeclaration: ({ source, specifiers }) => {
      const target = path.join(path.dirname(file), source.value).replace(/\.(?:js|mjs)$/, ".d.ts")
      for (const { local } of specifiers) imports.set(local.name, target)
    },
    TSModuleDeclaration: ({ id }) => {
      scope.push(id.type === "Identifier" ? id.name : "")
    },
    "TSModuleDeclaration:exit": () => {
      scope.pop()
    },
    TSInterfaceDeclaration: ({ body, extends: parents, id }) => {
      add(id.name, {
        fields: members(body.body),
        parents: parents.map(({ expression }) => nameOf(expression)),
        node: undefined
      })
    },
    TSTypeAliasDeclaration: ({ id, typeAnnotation }) => {
      add(id.name, { fields: new Map(), parents: [], node: typeAnnotation })
    },
    ClassDeclaration: ({ body, id }) => {
      if (id === null) return
      const fields = new Map<string, Node>()
      for (const member of body.body) {
        if (member.type !== "PropertyDefinition" || member.key.type !== "Identifier") continue
        const type = member.typeAnnotation?.typeAnnotation
        if (type !== undefined) fields.set(member.key.name, type)
      }
      add(id.name, { fields, parents: [], node: undefined })
    }
  }).visit(program)
  return { types, imports }
}

const files = new Map<string, Declarations>()

const declarationsOf = (file: string): Declarations => {
  const known = files.get(file) ?? read(file)
  files.set(file, known)
  return known
}

interface Found {
  readonly file: string
  readonly name: string
  readonly declared: Declared
}

/** The declaration of a name that stands in these namespaces of a file. */
const find = (file: string, scope: ReadonlyArray<string>, name: string): Found | undefined => {
  const { imports, types } = declarationsOf(file)
  for (let depth = scope.length; depth >= 0; depth--) {
    const full = [...scope.slice(0, depth), name].join(".")
    const declared = types.get(full)
    if (declared !== undefined) return { file, name: full, declared }
  }
  const [first = "", ...rest] = name.split(".")
  const target = imports.get(first)
  if (target === undefined || !existsSync(path.join(modules, target))) return undefined
  // A module's namespace has the types themselves; a type that is imported by its name is one of them.
  return find(target, [], rest.length === 0 ? first : rest.join("."))
}

const fieldsOf = ({ declared, file }: Found): ReadonlyMap<string, Placed> => {
  const fields = new Map<string, Placed>()
  for (const parent of declared.parents) {
    const found = find(file, declared.scope, parent)
    for (const [name, placed] of found === undefined ? [] : fieldsOf(found)) fields.set(name, placed)
  }
  return fields
}

/** What a type may be: object types, and the types of the elements of lists. Scalars and maps are neither. */
export interface Variants {
  readonly shapes: ReadonlyArray<Shape>
  readonly elements: ReadonlyArray<Placed>
}

const nothing: Variants = { shapes: [], elements: [] }

const all = (variants: ReadonlyArray<Variants>): Variants => ({
  shapes: variants.flatMap(({ shapes }) => shapes),
  elements: variants.flatMap(({ elements }) => elements)
})

const shapeOf = (found: Found): Shape => {
  const scope = found.name.split(".")
  const own = [...found.declared.fields].map(([name, node]) => [name, { file: found.file, scope, node }] as const)
  return { name: found.name, fields: new Map([...fieldsOf(found), ...own]) }
}

export const variantsOf = ({ file, node, scope }: Placed): Variants => {
  const at = (inner: Node) => variantsOf({ file, scope, node: inner })
  switch (node.type) {
    case "TSUnionType":
      return all(node.types.map(at))
    case "TSArrayType":
      return { shapes: [], elements: [{ file, scope, node: node.elementType }] }
    case "TSTypeLiteral": {
      const fields = [...members(node.members)].map(([name, inner]) => [name, { file, scope, node: inner }] as const)
      return fields.length === 0
        ? nothing
        : { shapes: [{ name: scope.join("."), fields: new Map(fields) }], elements: [] }
    }
    case "TSTypeReference": {
      const name = nameOf(node.typeName)
      const [argument] = node.typeArguments?.params ?? []
      if (name === "Array" && argument !== undefined) return { shapes: [], elements: [{ file, scope, node: argument }] }
      const found = find(file, scope, name)
      if (found === undefined) return nothing
      const { declared } = found
      return declared.node === undefined
        ? { shapes: [shapeOf(found)], elements: [] }
        : variantsOf({ file: found.file, scope: declared.scope, node: declared.node })
    }
    default:
      return nothing
  }
}

/** The object type of this name. */
export const sdkType = (file: string, name: string): Shape => {
  const found = find(file, [], name)
  if (found === undefined) throw new Error(`${file} has no ${name}`)
  return shapeOf(found)
}

/** The texts that a literal type allows. */
export const literalsOf = ({ file, node, scope }: Placed): ReadonlyArray<string> => {
  switch (node.type) {
    case "TSUnionType":
      return node.types.flatMap((inner) => literalsOf({ file, scope, node: inner }))
    case "TSLiteralType":
      return node.literal.type === "Literal" && typeof node.literal.value === "string" ? [node.literal.value] : []
    case "TSTypeReference": {
      const found = find(file, scope, nameOf(node.typeName))
      return found?.declared.node === undefined
        ? []
        : literalsOf({ file: found.file, scope: found.declared.scope, node: found.declared.node })
    }
    default:
      return []
  }
}
