/**
 * Builds the JSON of a call's arguments from parameters in tags, as they stream, by the tool's schema.
 *
 * A string is written as it arrives. Other values are held to their end and converted there. A value without a type in the schema is
 * held only if its first character may begin a JSON literal.
 */
import { GREATER, LESS, oneOf, SPACE } from "../../domain/stream/characters.ts"
import { itemsOf, propertyOf, type SchemaAt, type TypeName, typesOf } from "../schema.ts"
import { normaliseJson } from "./json.ts"
import { escapeText, quoteText } from "./jsonTokens.ts"
import { decodeEntities } from "./markup.ts"

/** The type that a parameter's tag states: `string="true"` or `string="false"`. */
export type Hint = "string" | "json" | undefined

const typeOfJson = (json: string): TypeName => {
  switch (json.charAt(0)) {
    case "\"":
      return "string"
    case "{":
      return "object"
    case "[":
      return "array"
    case "t":
    case "f":
      return "boolean"
    case "n":
      return "null"
    default:
      return "number"
  }
}

/** True for a schema that allows strings and nothing else but `null`. */
const isText = (types: ReadonlySet<TypeName>): boolean =>
  types.has("string") && types.size === (types.has("null") ? 2 : 1)

const allows = (types: ReadonlySet<TypeName>, type: TypeName): boolean =>
  types.has(type) || (type === "number" && types.has("integer"))

/** Tags that are nested more deeply are text. */
const maximalDepth = 8

/** The child elements of a text; `undefined` when it contains anything else. */
const childrenOf = (text: string): ReadonlyArray<readonly [name: string, inner: string]> | undefined => {
  const found: Array<readonly [string, string]> = []
  const nameAt = /[A-Za-z_][A-Za-z0-9_.-]{0,127}/y
  let at = 0
  while (at < text.length) {
    nameAt.lastIndex = at + 1
    const name = text.charCodeAt(at) === LESS ? nameAt.exec(text)?.[0] : undefined
    if (name === undefined || text.charCodeAt(at + 1 + name.length) !== GREATER) return undefined
    const start = at + name.length + 2
    let depth = 1
    let end = start
    while (depth > 0) {
      end = text.indexOf("<", end)
      if (end < 0) return undefined
      if (text.startsWith("<![CDATA[", end)) {
        end = text.indexOf("]]>", end)
        if (end < 0) return undefined
      } else if (text.startsWith("</" + name + ">", end)) {
        depth--
      } else if (text.startsWith("<" + name + ">", end)) {
        depth++
      }
      end++
    }
    found.push([name, text.slice(start, end - 1)])
    at = end - 1 + name.length + 3
    while (at < text.length && text.charCodeAt(at) <= SPACE) at++
  }
  return found.length === 0 ? undefined : found
}

/** Decodes the text of a nested element: a CDATA section unchanged, anything else with its entities. */
const cookedText = (raw: string): string => {
  const trimmed = raw.trim()
  if (trimmed.startsWith("<![CDATA[") && trimmed.endsWith("]]>")) return trimmed.slice(9, -3)
  return decodeEntities(raw.replace(/^\r?\n/, "").replace(/\r?\n$/, ""))
}

const fromChildren = (text: string, at: SchemaAt | undefined, depth: number): string | undefined => {
  const types = typesOf(at)
  const children = childrenOf(text)
  if (children === undefined) return undefined
  const first = children[0]![0]
  const isList = children.every(([name]) => name === first) && (first === "item" || allows(types, "array"))
  if (isList && (types.size === 0 || allows(types, "array"))) {
    const items = itemsOf(at)
    return "[" + children.map(([, inner]) => convert(inner, cookedText(inner), items, depth + 1)).join(",") + "]"
  }
  if (types.size > 0 && !types.has("object")) return undefined
  const members = new Map<string, { readonly at: SchemaAt | undefined; readonly values: Array<string> }>()
  for (const [name, inner] of children) {
    const property = propertyOf(at, name)
    const isRepeated = allows(typesOf(property), "array") && childrenOf(inner) === undefined &&
      !inner.trimStart().startsWith("[")
    const value = convert(inner, cookedText(inner), isRepeated ? itemsOf(property) : property, depth + 1)
    const member = members.get(name)
    if (member === undefined) members.set(name, { at: isRepeated ? property : undefined, values: [value] })
    else member.values.push(value)
  }
  return "{" +
    [...members].map(([name, { at, values }]) =>
      quoteText(name) + ":" + (at === undefined ? values[0]! : "[" + values.join(",") + "]")
    ).join(",") + "}"
}

/** The JSON of a whole value: `raw` is its text as written, `text` the same decoded. */
const convert = (raw: string, text: string, at: SchemaAt | undefined, depth: number): string => {
  const types = typesOf(at)
  if (isText(types)) {
    return types.has("null") && text === "null" ? "null" : quoteText(text)
  }
  const trimmed = raw.trim()
  if (trimmed.startsWith("<") && depth < maximalDepth) {
    const built = fromChildren(trimmed, at, depth)
    if (built !== undefined) return built
  }
  if (types.has("boolean") && /^(?:true|false)$/i.test(trimmed)) return trimmed.toLowerCase()
  const isOpen = types.size === 0 || types.has("string")
  const json = normaliseJson(trimmed, !isOpen)
  if (json === undefined) return quoteText(text)
  return types.has("string") && !allows(types, typeOfJson(json)) ? quoteText(text) : json
}

/** The first characters of JSON values. */
const beginsJson = oneOf("{[\"-0123456789tfn")

/** Elements of this name form a list even without a schema. */
const listOpener = "<item>"

export class XmlArguments {
  /** At least one parameter was opened, and the last one was closed. */
  isComplete = false

  private readonly names = new Set<string>()
  private readonly schema: SchemaAt | undefined
  private readonly write: (piece: string) => void
  private name = ""
  private isList = false
  private isSkipped = false
  private kind: "string" | "held" | "open" = "string"
  private isStreaming = false
  private isNullable = false
  /** The first characters of a value of unknown type. */
  private start = ""
  private text = ""
  private raw = ""

  constructor(schema: SchemaAt | undefined, write: (piece: string) => void) {
    this.schema = schema
    this.write = write
  }

  /** Begins a parameter. A repeated name adds an element to an array; without an array in the schema it is ignored. */
  open(name: string, hint: Hint): void {
    this.isComplete = false
    this.text = ""
    this.raw = ""
    this.start = ""
    this.isStreaming = false
    const isElement = this.isList && name === this.name
    this.isSkipped = this.names.has(name) && !isElement
    if (this.isSkipped) return
    if (isElement) {
      this.kind = "held"
      return
    }
    if (this.isList) this.write("]")
    this.isList = false
    this.name = name
    const types = typesOf(propertyOf(this.schema, name))
    const isString = isText(types)
    this.isNullable = isString && types.has("null")
    this.kind = isString || (types.size === 0 && hint === "string")
      ? "string"
      : types.size > 0 && !types.has("string")
      ? "held"
      : "open"
    this.write((this.names.size === 0 ? "{" : ",") + quoteText(name) + ":")
    this.names.add(name)
  }

  /** Takes a piece of the parameter's text. */
  content(text: string, raw: string): void {
    if (this.isSkipped) return
    if (this.isStreaming) {
      this.write(escapeText(text))
      return
    }
    this.text += text
    this.raw += raw
    if (
      this.kind === "string"
        ? !this.isNullable || !"null".startsWith(this.text)
        : this.kind === "open" && this.isText(text)
    ) {
      this.write("\"" + escapeText(this.text))
      this.isStreaming = true
    }
  }

  /** Ends the parameter. */
  close(): void {
    this.isComplete = true
    if (this.isSkipped) return
    if (this.isStreaming) {
      this.write("\"")
      return
    }
    const property = propertyOf(this.schema, this.name)
    if (this.kind === "string") {
      this.write(this.isNullable && this.text === "null" ? "null" : quoteText(this.text))
    } else if (this.isList) {
      this.write("," + convert(this.raw, this.text, itemsOf(property), 0))
    } else {
      const types = typesOf(property)
      const whole = convert(this.raw, this.text, property, 0)
      const isElement = allows(types, "array") && !allows(types, typeOfJson(whole))
      this.isList = isElement
      this.write(isElement ? "[" + convert(this.raw, this.text, itemsOf(property), 0) : whole)
    }
  }

  /** Ends the object. */
  finish(): void {
    if (this.isList) this.write("]")
    this.write(this.names.size === 0 ? "{}" : "}")
  }

  /** True once the value, with this piece, is neither a JSON literal nor a list. Decided by its sixth character. */
  private isText(piece: string): boolean {
    this.start += (this.start === "" ? piece.trimStart() : piece).slice(0, listOpener.length)
    if (this.start === "") return false
    if (this.start.startsWith("<")) {
      if (!listOpener.startsWith(this.start.slice(0, listOpener.length))) return true
      if (this.start.length >= listOpener.length) this.kind = "held"
      return false
    }
    const c = this.start.charCodeAt(0)
    const mayBeJson = beginsJson(c)
    if (mayBeJson) this.kind = "held"
    return !mayBeJson
  }
}
