/**
 * What an import changes and leaves out. Lines name places of the file, names of models, upstreams and variables, and rules: never a value,
 * which may be a secret.
 */
import type * as Schema from "effect/Schema"
import { isJsonObject, type RawConfig } from "../../../config/json.ts"
import { inLine } from "../../../domain/printed.ts"

/** The most characters of a place: names in a file may have any length. */
const longestPlace = 200

/** A name of the file as a line shows it. */
export const shown = (name: string): string => {
  const plain = inLine(name)
  return plain.length > longestPlace ? `${plain.slice(0, longestPlace)}…` : plain
}

/** The lines of an import. Their number is bounded by the length of the file. */
export class Report {
  readonly #lines = new Set<string>()
  #leftOut = 0

  /** What has another form or meaning in the configuration. */
  changed(place: string, reason: string): void {
    this.#lines.add(`${shown(place)}: changed: ${reason}`)
  }

  /** What the configuration lacks. */
  leftOut(place: string, reason: string): void {
    this.#leftOut++
    this.#lines.add(`${shown(place)}: left out: ${reason}`)
  }

  /** One line each, in the order of the import. */
  get lines(): ReadonlyArray<string> {
    return [...this.#lines]
  }

  /** The number of things that are left out. */
  get left(): number {
    return this.#leftOut
  }
}

/** True for a value that sets nothing: its absence loses nothing. */
const isOff = (value: Schema.Json): boolean =>
  value === null || value === false || value === "" ||
  (Array.isArray(value) ? value.every(isOff) : isJsonObject(value) && Object.values(value).every(isOff))

/** The fields of an object of the file. Those that no mapping reads are reported by `end`. */
export class Fields {
  readonly place: string
  readonly report: Report
  readonly #unread: Map<string, Schema.Json>

  constructor(value: RawConfig, place: string, report: Report) {
    this.place = place
    this.report = report
    this.#unread = new Map(Object.entries(value))
  }

  /** The place of a field. */
  at(name: string): string {
    return this.place === "" ? name : `${this.place}.${name}`
  }

  /** Reads a field of any type. */
  take(name: string): Schema.Json | undefined {
    const value = this.#unread.get(name)
    this.#unread.delete(name)
    return value === null ? undefined : value
  }

  /** The named fields, which stay unread. */
  peek(names: ReadonlyArray<string>): RawConfig {
    return Object.fromEntries(names.map((name) => [name, this.#unread.get(name) ?? null]))
  }

  #typed<A>(name: string, read: (value: Schema.Json) => A | undefined, rule: string): A | undefined {
    const value = this.take(name)
    if (value === undefined) return undefined
    const found = read(value)
    if (found === undefined) this.report.leftOut(this.at(name), rule)
    return found
  }

  /** Reads a text without surrounding blanks; `undefined` for an empty one. */
  text(name: string): string | undefined {
    const text = this.#typed(name, (value) => typeof value === "string" ? value.trim() : undefined, "it is no text")
    return text === "" ? undefined : text
  }

  /** Reads a number above 0, also one that is written as a text. */
  amount(name: string): number | undefined {
    return this.#typed(name, (value) => {
      const amount = typeof value === "string" && value.trim() !== "" ? Number(value) : value
      return typeof amount === "number" && Number.isFinite(amount) && amount > 0 ? amount : undefined
    }, "it is no number above 0")
  }

  /** Reads a whole number. */
  integer(name: string): number | undefined {
    return this.#typed(
      name,
      (value) => typeof value === "number" && Number.isInteger(value) ? value : undefined,
      "it is no whole number"
    )
  }

  /** Reads a flag; an absent one is false. */
  flag(name: string): boolean {
    return this.#typed(
      name,
      (value) => typeof value === "boolean" ? value : undefined,
      "it is neither true nor false"
    ) ??
      false
  }

  /** Reads an object. */
  object(name: string): Fields | undefined {
    const object = this.#typed(name, (value) => isJsonObject(value) ? value : undefined, "it is no object")
    return object === undefined ? undefined : new Fields(object, this.at(name), this.report)
  }

  /** Reads a list; an absent one is empty. */
  list(name: string): ReadonlyArray<Schema.Json> {
    return this.#typed(name, (value) => Array.isArray(value) ? value : undefined, "it is no list") ?? []
  }

  /** Reads a list of objects. */
  objects(name: string): ReadonlyArray<Fields> {
    return this.list(name).flatMap((item, index) => {
      const place = `${this.at(name)}[${index}]`
      if (isJsonObject(item)) return [new Fields(item, place, this.report)]
      this.report.leftOut(place, "it is no object")
      return []
    })
  }

  /** Reads a list of texts. */
  texts(name: string): ReadonlyArray<string> {
    return this.list(name).flatMap((item, index) => {
      const text = typeof item === "string" ? item.trim() : ""
      if (text === "") this.report.leftOut(`${this.at(name)}[${index}]`, "it is no text")
      return text === "" ? [] : [text]
    })
  }

  /** Reads the fields with certain names, as far as they are there; `undefined` without any. */
  pick(isWanted: (name: string) => boolean): RawConfig | undefined {
    const picked = [...this.#unread].filter(([name]) => isWanted(name))
    for (const [name] of picked) this.#unread.delete(name)
    return picked.length === 0 ? undefined : Object.fromEntries(picked)
  }

  /** The names and values of the fields that are left, which count as read. */
  rest(): ReadonlyArray<readonly [name: string, value: Schema.Json]> {
    const rest = [...this.#unread]
    this.#unread.clear()
    return rest
  }

  /** Reports each field that is left and sets something, with the reason for its name, else `otherwise`. */
  end(reasons: { readonly [name: string]: string } = {}, otherwise = "it has no counterpart here"): void {
    for (const [name, value] of this.rest()) {
      if (isOff(value)) continue
      this.report.leftOut(this.at(name), Object.hasOwn(reasons, name) ? reasons[name]! : otherwise)
    }
  }
}
