/**
 * What becomes of each field of a vendor's requests, as one table for each contract. The readers of bodies, `docs/fidelity.md` and
 * the tests use the tables.
 */
import { type GatewayError, invalidRequest } from "../GatewayError.ts"
import { isRecord, type Json } from "../json.ts"
import { type Cooperative, Slice } from "../stream/cooperative.ts"

/**
 * `modelled`: the gateway reads the field. `carried`: it goes to a server of the `openai` family, elsewhere it is reported. `told`: it has
 * no effect, and the reply's header names it. `refused`: the request fails with an error that names it. `hint`: it changes no reply.
 */
export type Fate = "modelled" | "carried" | "told" | "refused" | "hint"

/** One field. */
export interface Row {
  readonly fate: Fate
  /** The reason, for the documents; of a refused field also the message for the caller. */
  readonly why?: string
  /** The name of a carried field at the server, if it is another one. */
  readonly as?: string
  /** A carried field without which the reply would be of another kind: refused where it is not carried. */
  readonly required?: boolean
  /** True for values that ask for nothing: the field counts as absent. */
  readonly isSilent?: (value: unknown) => boolean
  /** The fields of an object. */
  readonly fields?: Fields
}

export type Fields = ReadonlyMap<string, Row>

/** The request of a vendor's contract. */
export interface Family {
  readonly name: string
  readonly fields: Fields
  /** The name of a field in the table, from that in a body. */
  readonly spelling?: (name: string) => string
  /** True if fields that the table lacks belong to the server; otherwise they are reported as ignored. */
  readonly open: boolean
}

const same = (...values: ReadonlyArray<unknown>) => (value: unknown): boolean => values.includes(value)

export const modelled: Row = { fate: "modelled" }

/** A modelled object, with what becomes of its fields. */
export const object = (fields: { readonly [name: string]: Row }): Row => ({
  fate: "modelled",
  fields: new Map(Object.entries(fields))
})

/** `silent`: the values that ask for nothing. */
export const told = (why: string, ...silent: ReadonlyArray<unknown>): Row => ({
  fate: "told",
  why,
  isSilent: same(...silent)
})

export const refused = (why: string, isSilent: (value: unknown) => boolean = same()): Row => ({
  fate: "refused",
  why,
  isSilent
})

/** Refused by the decoder. */
export const refusedByDecoder = (why: string): Row => ({ fate: "refused", why, isSilent: () => true })

/** Noted by the decoder. */
export const toldByDecoder = (why: string): Row => ({ fate: "told", why, isSilent: () => true })

export const carried = (options: Pick<Row, "as" | "required" | "isSilent" | "why"> = {}): Row => ({
  fate: "carried",
  ...options
})

export const hint = (why: string): Row => ({ fate: "hint", why })

export { same as oneOf }

/** Fields of a caller's body that go to the server as they stand. */
export type ServerFields = { readonly [name: string]: Json }

/** What a body says beyond what the gateway models. */
export interface Rest {
  /** Fields for the server; absent without such fields. */
  readonly serverFields: ServerFields | undefined
  /** The paths of fields without effect. */
  readonly ignored: ReadonlyArray<string>
  /** The number of further fields without effect. */
  readonly more: number
  readonly refused: GatewayError | undefined
}

const nothing: Rest = { serverFields: undefined, ignored: [], more: 0, refused: undefined }

/** Fields that go to the server at most, and paths that are named at most. */
const mostFields = 100

const isUnsaid = (value: unknown): boolean => value === null || value === undefined

/** Collects the rest of one body. Bounded by `mostFields`, beyond which fields are counted only. */
class Collection {
  private fields: Record<string, Json> | undefined
  private count = 0
  private more = 0
  private readonly ignored: Array<string> = []
  private refused: GatewayError | undefined

  carry(name: string, value: unknown, path: string): void {
    // An assignment to this key would set the prototype.
    if (this.count === mostFields || name === "__proto__") return this.ignore(path)
    this.fields ??= {}
    if (Object.hasOwn(this.fields, name)) return
    this.count++
    this.fields[name] = value as Json
  }

  ignore(path: string): void {
    if (this.ignored.length < mostFields) this.ignored.push(path)
    else this.more++
  }

  /** Notes a field that the gateway does not read. */
  add(row: Row, name: string, value: unknown, path: string): void {
    if (isUnsaid(value) || row.isSilent?.(value) === true) return
    switch (row.fate) {
      case "carried":
        return this.carry(row.as ?? name, value, path)
      case "told":
        return Array.isArray(value) && value.length === 0 ? undefined : this.ignore(path)
      case "refused":
        this.refused ??= invalidRequest(`${path}: ${row.why ?? "is not supported"}`, path)
        return
      case "modelled":
      case "hint":
        return
    }
  }

  get rest(): Rest {
    const { fields: serverFields, ignored, more, refused } = this
    return { serverFields, ignored, more, refused }
  }
}

/** What a parsed body says beyond what the gateway models. An ordinary body has nothing of the kind. */
export function* restOf({ fields, open, spelling }: Family, body: unknown): Cooperative<Rest> {
  if (!isRecord(body)) return nothing
  const slice = new Slice()
  let rest: Collection | undefined
  for (const name of Object.keys(body)) {
    if (slice.add(1)) yield slice.end()
    const known = spelling === undefined ? name : spelling(name)
    const row = fields.get(known)
    const value = body[name]
    if (row === undefined) {
      if (isUnsaid(value)) continue
      rest ??= new Collection()
      if (open) rest.carry(name, value, name)
      else rest.ignore(name)
    } else if (row.fields !== undefined) {
      if (!isRecord(value)) continue
      for (const inner of Object.keys(value)) {
        if (slice.add(1)) yield slice.end()
        const innerName = spelling === undefined ? inner : spelling(inner)
        const innerRow = row.fields.get(innerName)
        if (innerRow?.fate === "modelled") continue
        rest ??= new Collection()
        rest.add(innerRow ?? unknownField, innerName, value[inner], `${known}.${innerName}`)
      }
    } else if (row.fate !== "modelled") {
      rest ??= new Collection()
      rest.add(row, known, value, known)
    }
  }
  return rest === undefined ? nothing : rest.rest
}

const unknownField: Row = { fate: "told" }
