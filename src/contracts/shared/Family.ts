/**
 * What becomes of each field of a vendor's requests, as one table for each contract. The readers of bodies, `docs/reference/request-fields.md` and
 * the tests use the tables.
 */
import type { Json, JsonRecord } from "../../domain/json.ts"
import type { FamilyName } from "../../domain/VendorFields.ts"

/**
 * `supported`: the gateway reads the field. `passed`: it goes to a server of the `openai` family, elsewhere it is reported. `reported`: a
 * server of the same contract gets it; elsewhere it has no effect, and the reply's header names it. `ignorable`: the same, but it changes no
 * reply, so that no header names it. `refused`: the request fails with an error that names it.
 */
export type Fate = "supported" | "passed" | "reported" | "refused" | "ignorable"

/** One field. */
export interface Row {
  readonly fate: Fate
  /** The reason, for the documents; of a refused field also the message for the caller. */
  readonly why: string | undefined
  /** The name of a passed field at the server, if it is another one. */
  readonly as: string | undefined
  /** A field without which the reply would be another one: refused where it is not sent. */
  readonly required: boolean
  /** The path within a value that errors and the header name; by default the field itself is named. */
  readonly faultIn: ((value: unknown) => string) | undefined
  /** True for values that ask for nothing: no header names them. */
  readonly isSilent: ((value: unknown) => boolean) | undefined
  /** A field that no server gets, because it concerns what the gateway does itself. */
  readonly local: boolean
  /** Nothing within the value is the vendor's, or all of it is supported. */
  readonly isOpaque: boolean
  /** The fields of an object. */
  readonly fields: Fields | undefined
  /** The kinds of an object whose fields depend on its kind. */
  readonly kinds: Kinds | undefined
  /** The elements of a list. A single value in the place of a list is its first element. */
  readonly items: Row | undefined
  /** A single value in the place of a list has no index in its path. */
  readonly isAlone: boolean
  /**
   * The element of this kind, or the field, is sent whole to a server of the same contract. Other drivers send what the gateway makes of
   * it.
   */
  readonly whole: boolean
  /** Brings a value to the form that the table describes. */
  readonly form: ((value: unknown) => unknown) | undefined
}

export type Fields = ReadonlyMap<string, Row>

/** The kinds of an object. An element of another kind is sent whole to a server of the same contract; elsewhere the header names it. */
export interface Kinds {
  /** The field that names the kind, or what finds it. */
  readonly by: string | ((value: JsonRecord) => string | undefined)
  /** By kind; the kind "" belongs to an object without one. */
  readonly rows: ReadonlyMap<string, Row>
}

/** The request of a vendor's contract. */
export interface Family {
  readonly name: string
  /** The vendor's contract, if the request becomes a conversation. No driver sends the vendor fields of other requests as they stand. */
  readonly vendor?: FamilyName
  readonly fields: Fields
  /** The name of a field in the table, from that in a body. */
  readonly spelling?: (name: string) => string
  /** True if fields that the table lacks belong to the server; otherwise they are reported as ignored. */
  readonly open: boolean
}

const same = (...values: ReadonlyArray<unknown>) => (value: unknown): boolean => values.includes(value)

export const supported: Row = {
  fate: "supported",
  why: undefined,
  as: undefined,
  required: false,
  faultIn: undefined,
  isSilent: undefined,
  local: false,
  isOpaque: false,
  fields: undefined,
  kinds: undefined,
  items: undefined,
  isAlone: false,
  whole: false,
  form: undefined
}

/** A supported value whose inside the caller defines, or which the decoder reads as a whole. */
export const opaque: Row = { ...supported, isOpaque: true }

/** Rows by the names of their fields or kinds. */
export interface Table {
  readonly [name: string]: Row
}

/** A supported object, with what becomes of its fields. */
export const object = (fields: Table): Row => ({ ...supported, fields: new Map(Object.entries(fields)) })

/** A supported object of one of several kinds. */
export const objectBy = (by: Kinds["by"], kinds: Table): Row => ({
  ...supported,
  kinds: { by, rows: new Map(Object.entries(kinds)) }
})

/** A supported list of objects. */
export const listOf = (items: Row, options?: Partial<Pick<Row, "isAlone" | "form">>): Row => ({
  ...supported,
  items,
  ...options
})

/** A kind or a field that the gateway translates for servers of other contracts. Those of its own get it whole. */
export const translated = (why?: string): Row => ({ ...supported, whole: true, why })

/** A field that servers of the `openai` family get, by the name `as` if it is another one there. Elsewhere it is reported. */
export const passed = (options?: Partial<Pick<Row, "as" | "required" | "isSilent" | "why">>): Row => ({
  ...supported,
  fate: "passed",
  ...options
})

export const ignorable = (why: string): Row => ({ ...supported, fate: "ignorable", why })

export const refused = (why: string, isSilent: (value: unknown) => boolean = same()): Row => ({
  ...ignorable(why),
  fate: "refused",
  isSilent
})

/** `silent`: the values that ask for nothing. */
export const reported = (why: string, ...silent: ReadonlyArray<unknown>): Row => ({
  ...refused(why, same(...silent)),
  fate: "reported"
})

/** Refused unless the server has the same contract. */
export const required = (why: string): Row => ({ ...reported(why), required: true })

/** No server gets the field, because it concerns what the gateway does itself. */
export const local = (row: Row): Row => ({ ...row, local: true })

/** Refused by the decoder. */
export const refusedByDecoder = (why: string): Row => refused(why, () => true)

/** Noted by the decoder. */
export const reportedByDecoder = (why: string): Row => ({ ...refusedByDecoder(why), fate: "reported" })

export { same as oneOf }

/** Fields of a caller's body that go to the server as they stand. */
export type ServerFields = { readonly [name: string]: Json }
