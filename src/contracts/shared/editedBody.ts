/**
 * Changes single fields of a request's text without reading the rest: the conversation stays as it was written, with each of its digits.
 * Tools, schemas, stop sequences and the conversation itself are never changed.
 */
import { isRecord, type Json } from "../../domain/json.ts"
import { effortLevels, nearestEffort } from "../../domain/modelFacts.ts"
import type { RefusedPart } from "../../domain/refusedParts.ts"
import { parseJson } from "./json.ts"
import { wordLimit } from "./limits.ts"

/** A member of the object: its name, and the text of its value. */
interface Member {
  readonly name: string
  text: string
}

const QUOTE = 0x22
const BACKSLASH = 0x5c

/** The index behind the string that begins at `start`. */
const afterString = (text: string, start: number): number => {
  for (let i = start + 1;;) {
    const end = text.indexOf("\"", i)
    if (end === -1) return text.length
    let slashes = 0
    while (text.charCodeAt(end - 1 - slashes) === BACKSLASH) slashes++
    if (slashes % 2 === 0) return end + 1
    i = end + 1
  }
}

/** The index behind the value that begins at `start`. */
const afterValue = (text: string, start: number): number => {
  let depth = 0
  for (let i = start; i < text.length;) {
    const code = text.charCodeAt(i)
    if (code === QUOTE) {
      i = afterString(text, i)
      continue
    }
    if (code === 0x7b || code === 0x5b) depth++
    else if (code === 0x7d || code === 0x5d) {
      if (depth === 0) return i
      depth--
    } else if (code === 0x2c && depth === 0) return i
    i++
  }
  return text.length
}

/** The members of an object that the gateway has written, which has no blanks between them. */
const membersOf = (body: string): Array<Member> => {
  const members: Array<Member> = []
  for (let i = 1; body.charCodeAt(i) === QUOTE;) {
    const colon = afterString(body, i)
    const end = afterValue(body, colon + 1)
    members.push({ name: body.slice(i + 1, colon - 1), text: body.slice(colon + 1, end) })
    i = end + 1
  }
  return members
}

/** The texts of the elements of a list that the gateway has written. */
const elementsOf = (list: string): ReadonlyArray<string> => {
  const elements: Array<string> = []
  for (let i = 1; i < list.length - 1;) {
    const end = afterValue(list, i)
    elements.push(list.slice(i, end))
    i = end + 1
  }
  return elements
}

const textOf = (members: ReadonlyArray<Member>): string =>
  `{${members.map(({ name, text }) => `"${name}":${text}`).join(",")}}`

/** A text that the gateway has written, without some members of its object and with others at its end. */
export const changedMembers = (
  body: string,
  without: ReadonlyArray<string>,
  added: { readonly [name: string]: Json }
): string =>
  textOf([
    ...membersOf(body).filter(({ name }) => !without.includes(name) && !Object.hasOwn(added, name)),
    ...Object.entries(added).map(([name, value]) => ({ name, text: JSON.stringify(value) }))
  ])

/** Servers write a name in snake case or camel case. */
const plain = (name: string): string => name.replaceAll("_", "").toLowerCase()

const setOf = (names: string): ReadonlySet<string> => new Set(names.split(" "))

/** What is never changed, by its plain name at the top. */
const kept = setOf(
  "model messages input contents system systeminstruction instructions prompt tools toolchoice toolconfig functions functioncall " +
    "stop stopsequences stream n responseformat outputformat text outputconfig generationconfig previousresponseid conversation"
)

/** The same within the objects of `kept` that have other fields too. */
const keptWithin = setOf("format stopsequences responseschema responsejsonschema responsemimetype candidatecount")

/** Names and values with which no words of a message can be written, whatever the server puts around them. */
const plainName = /^[\w.-]+$/
const plainText = /^[\w\s".,:{}[\]+-]*$/

const holders = setOf("text outputconfig generationconfig")

const mayChange = ([first = "", second]: ReadonlyArray<string>): boolean =>
  second === undefined ? !kept.has(first) : holders.has(first) ? !keptWithin.has(second) : !kept.has(first)

/** Other places of a field, by contract. */
const alsoAt: Readonly<Record<string, ReadonlyArray<string>>> = {
  reasoningeffort: ["reasoning.effort", "output_config.effort"],
  effort: ["reasoning_effort", "reasoning.effort", "output_config.effort"],
  verbosity: ["text.verbosity"]
}

/** The thinking of earlier turns, by the names that chat servers have for it. */
export const thoughtsOfTurns: ReadonlySet<string> = new Set(
  ["reasoning", "reasoning_content", "reasoning_details"].map((name) => `messages.${name}`)
)

/** The list in which a Responses request asks for seals. */
const sealedPath = "include"

const limitPaths = ["max_tokens", "max_completion_tokens", "max_output_tokens", "generationConfig.maxOutputTokens"]

/** The limits that servers have two names for. */
const otherName: Readonly<Record<string, string>> = {
  max_tokens: "max_completion_tokens",
  max_completion_tokens: "max_tokens"
}

/** A request's text while its fields are changed. */
export class EditedBody {
  readonly #members: Array<Member>
  readonly #refused: ReadonlySet<string>
  /** The paths of what was changed. */
  readonly changed: Array<string> = []

  /** `refused` are fields that the server does not read. */
  constructor(body: string, refused: ReadonlySet<string> = new Set()) {
    this.#members = membersOf(body)
    this.#refused = refused
  }

  /** True if no field beside the conversation has a name or a value that could be a part of a sentence of the server. */
  get isPlain(): boolean {
    return this.#members.every(({ name, text }) =>
      kept.has(plain(name)) || (plainName.test(name) && plainText.test(text))
    )
  }

  /** The paths at which the body has a field that a server names. */
  placesOf(path: string): ReadonlyArray<string> {
    const names = [path, ...alsoAt[plain(path)] ?? [], `generationConfig.${path}`]
    return names.filter((name) => this.get(name) !== undefined)
  }

  /** Those at which it has a value, in whatever case. */
  placesWith(path: string, value: string): ReadonlyArray<string> {
    return this.placesOf(path).filter((place) => String(this.get(place)).toLowerCase() === value.toLowerCase())
  }

  /** Those at which it has a number outside of a range, each with the number. */
  placesOutside(
    { least, most, path }: { readonly least: number; readonly most: number; readonly path: string }
  ): ReadonlyArray<readonly [place: string, value: number]> {
    return this.placesOf(path).flatMap((place) => {
      const value = this.get(place)
      return typeof value === "number" && (value < least || value > most) ? [[place, value] as const] : []
    })
  }

  /** The value at a path of one or two names, or within a third. */
  get(path: string): unknown {
    const [first = "", ...rest] = path.split(".").map(plain)
    const member = this.#members.find(({ name }) => plain(name) === first)
    let value = member === undefined ? undefined : rest.length === 0 && member.text.length > 1_000
      ? member.text
      : parseJson(member.text)
    for (const key of rest) {
      const name = isRecord(value) ? Object.keys(value).find((each) => plain(each) === key) : undefined
      value = isRecord(value) && name !== undefined ? value[name] : undefined
    }
    return value
  }

  /** Sets the value at a path, or removes it. Returns false if that is not permitted. */
  set(path: string, value: Json | undefined, name = path): boolean {
    const keys = path.split(".").map(plain)
    const at = this.#members.findIndex((member) => plain(member.name) === keys[0])
    const member = this.#members[at]
    if (member === undefined || !mayChange(keys)) return false
    if (keys.length === 1) {
      if (value === undefined) this.#members.splice(at, 1)
      else this.#members[at] = { name, text: JSON.stringify(value) }
    } else {
      const root: unknown = parseJson(member.text)
      let holder = root
      for (const key of keys.slice(1, -1)) {
        const found = isRecord(holder) ? Object.keys(holder).find((each) => plain(each) === key) : undefined
        holder = isRecord(holder) && found !== undefined ? holder[found] : undefined
      }
      const last = isRecord(holder) ? Object.keys(holder).find((each) => plain(each) === keys.at(-1)) : undefined
      if (!isRecord(holder) || last === undefined) return false
      const fields = holder as Record<string, unknown>
      if (value === undefined) delete fields[last]
      else fields[last] = value
      member.text = JSON.stringify(root)
      if (member.text === "{}") this.#members.splice(at, 1)
    }
    this.changed.push(path)
    return true
  }

  /** Asks for no seals. */
  withoutSeals(): void {
    const list = this.get(sealedPath)
    if (!Array.isArray(list)) return
    const others = list.filter((each) => each !== "reasoning.encrypted_content")
    if (others.length < list.length) this.set(sealedPath, others.length === 0 ? undefined : others)
  }

  /** Leaves a field of the assistant's turns out. */
  withoutOfTurns(path: string): void {
    const [list = "", name] = path.split(".")
    const turns = this.#members.find((member) => member.name === list)
    if (turns?.text.startsWith("[") !== true || !turns.text.includes(`"${name}":`)) return
    const before = turns.text
    turns.text = `[${
      elementsOf(before).map((turn) => {
        const members = membersOf(turn)
        const isOfModel = members.some((member) => member.name === "role" && member.text === "\"assistant\"")
        return isOfModel ? textOf(members.filter((member) => member.name !== name)) : turn
      }).join(",")
    }]`
    if (turns.text !== before) this.changed.push(path)
  }

  /** The limit of output, with its path. */
  limit(): readonly [path: string, tokens: number] | undefined {
    for (const path of limitPaths) {
      const tokens = this.get(path)
      if (typeof tokens === "number") return [path, tokens]
    }
    return undefined
  }

  /** Sends the limit by its other name. */
  renameLimit(path: string): boolean {
    const other = otherName[path]
    const value = this.get(path)
    if (other === undefined || this.#refused.has(other) || typeof value !== "number" || this.get(other) !== undefined) {
      return false
    }
    const isSet = this.set(path, value, other)
    // Nothing is lost.
    if (isSet) this.changed.pop()
    return isSet
  }

  toString(): string {
    return textOf(this.#members)
  }
}

const efforts: ReadonlySet<unknown> = new Set(effortLevels)

/** The value in the place of one that a model does not take; `undefined` to leave it out. */
const takenValue = (value: unknown, allowed: ReadonlyArray<string>): string | undefined =>
  typeof value === "string" && value !== "none" && efforts.has(value) ? nearestEffort(value, allowed) : undefined

/** The number in the place of one that a model does not take; `undefined` to leave out what says something else than an amount. */
const takenNumber = (value: number, least: number, most: number): number | undefined =>
  value <= 0 ? undefined : Math.min(Math.max(value, least), most)

/** Tokens that stay free of a window, since servers count the prompt differently from request to request. */
const spare = 64

/** Changes a body by what a server has refused. `mayDrop` tells which fields may be left out. */
export const withoutRefused = (
  body: EditedBody,
  part: RefusedPart,
  mayDrop: (path: string, part: RefusedPart) => boolean
): void => {
  switch (part._tag) {
    case "UnsupportedField":
      // What else a list asks for stays.
      if (part.path === sealedPath && mayDrop(part.path, part)) return body.withoutSeals()
      if (thoughtsOfTurns.has(part.path) && mayDrop(part.path, part)) return body.withoutOfTurns(part.path)
      for (const path of body.placesOf(part.path)) {
        if (!body.renameLimit(path) && mayDrop(path, part)) body.set(path, undefined)
      }
      return
    case "UnsupportedValue":
      for (const path of body.placesOf(part.path)) {
        const value = body.get(path)
        if (!mayDrop(path, part) || part.allowed.includes(String(value))) continue
        // What turns thinking off is another value than the one that was refused.
        if (part.allowed.length === 0 && value === "none") continue
        body.set(path, takenValue(value, part.allowed))
      }
      return
    case "RefusedValue":
      for (const path of body.placesWith(part.path, part.value)) {
        // The rest of an object belongs to its type.
        if (mayDrop(path, part)) body.set(path.replace(/\.type$/, ""), undefined)
      }
      return
    case "OutOfRange":
      for (const [path, value] of body.placesOutside(part)) {
        if (mayDrop(path, part)) body.set(path, takenNumber(value, part.least, part.most))
      }
      return
    case "Conflict": {
      const [, ...others] = part.paths.flatMap((path) => body.placesOf(path))
      for (const path of others) if (mayDrop(path, part)) body.set(path, undefined)
      return
    }
    case "TooLarge":
    case "OverWindow": {
      const most = part._tag === "TooLarge" ? part.most : part.window - part.prompt - spare
      const limit = body.limit()
      if (limit !== undefined && limit[1] > most && most > 0 && mayDrop(limit[0], part)) body.set(limit[0], most)
      return
    }
    case "TooLong": {
      // Names and ids within lists stay here: they are the same in the whole conversation, and come back in the reply.
      const text = part.path.includes(".") ? undefined : body.get(part.path)
      if (typeof text !== "string" || text.length <= part.most || !mayDrop(part.path, part)) return
      body.set(part.path, wordLimit(part.most, "a-zA-Z0-9_-").accepted(text))
      return
    }
    case "ForcedCall":
    case "ToolsOrSchema":
    case "NoSchema":
    case "AlternateTurns":
    case "NoSystem":
    case "MixedStrict":
  }
}
