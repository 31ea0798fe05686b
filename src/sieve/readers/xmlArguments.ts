/**
 * Builds the JSON of a call's arguments from parameters that are given as text in tags, as they stream, by the declared schema.
 *
 * A string leaves as it arrives. Other values are held to their end and converted there; without a schema a value is held only
 * while its first character may begin a JSON literal.
 */
import { GREATER, LESS, oneOf, SPACE } from "../../domain/stream/characters.ts"
import type { SchemaAt, TypeName } from "../schema.ts"
import { itemsOf, propertyOf, typesOf } from "../schema.ts"
import { decodeEntities } from "./entities.ts"
import { normaliseJson } from "./json.ts"
import { escapeText, quoteText } from "./jsonText.ts"

/** What a parameter says of itself: `string="true"` or `"false"`. */
export type Hint = "string" | "json" | undefined

const typeOfJson = (json: string): TypeName => {
  switch (json.charCodeAt(0)) {
    case 34:
      return "string"
    case 123:
      return "object"
    case 91:
      return "array"
    case 116:
    case 102:
      return "boolean"
    case 110:
      return "null"
    default:
      return "number"
  }
}

const allows = (types: ReadonlySet<TypeName>, type: TypeName): boolean =>
  types.has(type) || (type === "number" && types.has("integer"))

/** Nested tags deeper than this are text. */
const maximalDepth = 8

/** The child elements of a text that holds nothing else, or `undefined`. */
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

/** Decodes the text of a nested element: its CDATA section as it is, or its entities. */
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

/** The JSON of a whole value: `raw` as it was written, `text` decoded. */
const convert = (raw: string, text: string, at: SchemaAt | undefined, depth: number): string => {
  const types = typesOf(at)
  if (types.has("string") && [...types].every((type) => type === "string" || type === "null")) {
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

/** With what a JSON value begins. */
const beginsJson = oneOf("{[\"-0123456789tfn")

/** A list of these is a list also where no schema says so. */
const listOpener = "<item>"

export class XmlArguments {
  /** Every parameter that was opened was also closed, and there is one. */
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
  /** The first characters of a value that may be of any type. */
  private start = ""
  private text = ""
  private raw = ""

  constructor(schema: SchemaAt | undefined, write: (piece: string) => void) {
    this.schema = schema
    this.write = write
  }

  /** Begins a parameter. A second one of the same name is an element where the schema says array, else it is left out. */
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
    const isString = types.has("string") && [...types].every((type) => type === "string" || type === "null")
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

  /** True once the text with this next piece can be no JSON literal and no list; decides no later than at its sixth character. */
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
