/**
 * Decodes a large body by its Schema piece by piece, so that the event loop is not held: lists by their elements, the
 * caller's own JSON not at all. The value that comes out is the one that the Schema makes of the whole.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as SchemaIssue from "effect/SchemaIssue"
import { isRecord, type JsonRecord } from "../domain/json.ts"
import { type Cooperative, Slice } from "../domain/stream/cooperative.ts"
import { fieldsRead, type Types } from "./fieldsRead.ts"

/** What decodes a value, and the type that it gives to it. */
interface Decoder {
  readonly decode: (value: unknown) => Result.Result<unknown, Schema.SchemaError>
  readonly types: Types
}

const decoderOf = (schema: Schema.ConstraintDecoder<unknown>): Decoder => ({
  decode: Schema.decodeUnknownResult(schema),
  types: [schema.ast]
})

/** How one field of an object is taken apart. */
export type Piece =
  /** A list whose elements are decoded one by one, in the place of a value that is one. */
  | { readonly _tag: "Each"; readonly element: Decoder; readonly pieces: Pieces | undefined }
  /** An object with pieces. */
  | { readonly _tag: "Within"; readonly pieces: Pieces }
  /** Any JSON of the caller's own: an object or a list is taken as it is. */
  | { readonly _tag: "Own" }

/** The pieces of an object, by field; a function where they depend on it. `own`: it is the caller's, but for its `type`. */
export type Pieces =
  | { readonly [field: string]: Piece }
  | ((value: JsonRecord) => { readonly [field: string]: Piece } | "own")

/** A list of what a Schema decodes; its elements may have pieces of their own. */
export const each = (element: Schema.ConstraintDecoder<unknown>, pieces?: Pieces): Piece => ({
  _tag: "Each",
  element: decoderOf(element),
  pieces
})

export const within = (pieces: Pieces): Piece => ({ _tag: "Within", pieces })

export const own: Piece = { _tag: "Own" }

/** A fault and the path of the piece that it is in. */
export interface PieceFault {
  readonly path: ReadonlyArray<PropertyKey>
  readonly issue: SchemaIssue.Issue
}

type Fields = { readonly [field: string]: Piece } | "own" | undefined

const fieldsOf = (pieces: Pieces | undefined, value: unknown): Fields =>
  !isRecord(value) || pieces === undefined ? undefined : typeof pieces === "function" ? pieces(value) : pieces

const pruneField = (piece: Piece, value: unknown, types: Types): unknown => {
  switch (piece._tag) {
    case "Own":
      return typeof value === "object" && value !== null ? Array.isArray(value) ? [] : {} : value
    case "Within":
      return prune(value, piece.pieces, types)
    case "Each":
      // The first element stays, for what the Schema says about the list as a whole.
      return Array.isArray(value)
        ? value.slice(0, 1).map((first) => prune(first, piece.pieces, piece.element.types))
        : value
  }
}

/** What a Schema of these types reads of the value, without what is decoded apart. */
const prune = (value: unknown, pieces: Pieces | undefined, types: Types): unknown => {
  const fields = fieldsOf(pieces, value)
  if (fields === undefined || !isRecord(value)) return value
  if (fields === "own") return { type: value["type"] }
  const { named, others } = fieldsRead(types)
  const pruned: Record<PropertyKey, unknown> = others ? { ...value } : {}
  for (const name of others ? [] : named.keys()) {
    if (Object.hasOwn(value, name)) pruned[name] = Reflect.get(value, name)
  }
  for (const [name, piece] of Object.entries(fields)) {
    if (Object.hasOwn(pruned, name)) pruned[name] = pruneField(piece, value[name], named.get(name) ?? none)
  }
  return pruned
}

const none: Types = []

type Decoded = Result.Result<unknown, PieceFault>

/** Whether none of the fields has what is decoded apart. */
const isWhole = (value: unknown, fields: Fields): boolean => {
  if (fields === undefined || !isRecord(value)) return true
  if (fields === "own") return false
  for (const name in fields) {
    const field = value[name]
    if (typeof field === "object" && field !== null) return false
  }
  return true
}

/** A fault, seen from where these keys lead to its piece. */
const behind = (keys: ReadonlyArray<PropertyKey>, { issue, path }: PieceFault): PieceFault => ({
  path: [...keys, ...path],
  issue
})

/** Puts back what was decoded apart; `decoded` is what a Schema has just made, so nobody else has it. */
function* graft(
  decoded: unknown,
  value: unknown,
  pieces: Pieces | undefined,
  slice: Slice
): Cooperative<Decoded> {
  const fields = fieldsOf(pieces, value)
  if (fields === "own") return Result.succeed(value)
  if (fields === undefined || !isRecord(value) || !isRecord(decoded)) return Result.succeed(decoded)
  for (const [name, piece] of Object.entries(fields)) {
    const given = value[name]
    // A field that the Schema does not read here is none, whatever it has.
    if (!Object.hasOwn(decoded, name) || typeof given !== "object" || given === null) continue
    if (piece._tag === "Own") {
      Reflect.set(decoded, name, given)
    } else if (piece._tag === "Within") {
      const part = yield* graft(decoded[name], given, piece.pieces, slice)
      if (Result.isFailure(part)) return Result.fail(behind([name], part.failure))
      Reflect.set(decoded, name, part.success)
    } else if (Array.isArray(given)) {
      const list: Array<unknown> = []
      for (let i = 0; i < given.length; i++) {
        const part = yield* decodePiece(piece.element, given[i], piece.pieces, slice)
        if (Result.isFailure(part)) return Result.fail(behind([name, i], part.failure))
        list.push(part.success)
      }
      Reflect.set(decoded, name, list)
    }
  }
  return Result.succeed(decoded)
}

function* decodePiece(
  { decode, types }: Decoder,
  value: unknown,
  pieces: Pieces | undefined,
  slice: Slice
): Cooperative<Decoded> {
  // An element costs more than a plain item.
  if (slice.add(10)) yield slice.end()
  const whole = isWhole(value, fieldsOf(pieces, value))
  const decoded = decode(whole ? value : prune(value, pieces, types))
  if (Result.isFailure(decoded)) return Result.fail({ path: [], issue: decoded.failure.issue })
  return whole ? Result.succeed(decoded.success) : yield* graft(decoded.success, value, pieces, slice)
}

/** Makes a decoder of values by a Schema in slices; what it gives is what the Schema makes of the whole. */
export const decodePieces = <S extends Schema.ConstraintDecoder<unknown>>(schema: S, pieces: Pieces) => {
  const decoder = decoderOf(schema)
  return function*(value: unknown): Cooperative<Result.Result<S["Type"], PieceFault>> {
    const decoded = yield* decodePiece(decoder, value, pieces, new Slice())
    return Result.isFailure(decoded) ? Result.fail(decoded.failure) : Result.succeed(decoded.success as S["Type"])
  }
}
