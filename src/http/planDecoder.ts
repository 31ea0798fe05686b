/**
 * Decodes a large body by its Schema in slices, so that decoding does not block the event loop: lists element by element,
 * caller-defined JSON not at all. The result equals what the Schema makes of the whole body.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import type * as SchemaIssue from "effect/SchemaIssue"
import { isRecord, type JsonRecord } from "../domain/json.ts"
import { type Cooperative, Slice } from "../domain/stream/cooperative.ts"

/** The possible types of a value. The array's identity is the cache key of `fieldsRead`. */
type Types = ReadonlyArray<SchemaAST.AST>

/** The fields of an object that a Schema reads. */
interface FieldsRead {
  /** The types of the fields that are read by name. */
  readonly named: ReadonlyMap<PropertyKey, Types>
  /** All other fields are read too. */
  readonly others: boolean
}

/** The members of a union, nested unions included; else the type itself. */
const membersOf = (type: SchemaAST.AST): Types =>
  SchemaAST.isUnion(type)
    ? type.types.flatMap(membersOf)
    : SchemaAST.isSuspend(type)
    ? membersOf(type.thunk())
    : [type]

const findFields = (types: Types): FieldsRead => {
  const objects = types.flatMap((type) => membersOf(SchemaAST.toEncoded(type))).filter(SchemaAST.isObjects)
  const named = new Map<PropertyKey, Array<SchemaAST.AST>>()
  for (const { propertySignatures } of objects) {
    for (const { name, type } of propertySignatures) {
      const known = named.get(name)
      if (known === undefined) named.set(name, [type])
      else known.push(type)
    }
  }
  return { named, others: objects.every(({ indexSignatures }) => indexSignatures.length > 0) }
}

const found = new WeakMap<Types, FieldsRead>()

/**
 * The fields that a Schema of these types reads; ignored fields need no copy, and a body may have very many of them. A union
 * reads other fields only if all of its members do.
 */
const fieldsRead = (types: Types): FieldsRead => {
  const known = found.get(types) ?? findFields(types)
  found.set(types, known)
  return known
}

/** Decodes a value to one of its types. */
interface Decoder {
  readonly decode: (value: unknown) => Result.Result<unknown, Schema.SchemaError>
  readonly types: Types
}

const decoderOf = (schema: Schema.ConstraintDecoder<unknown>): Decoder => ({
  decode: Schema.decodeUnknownResult(schema),
  types: [schema.ast]
})

/** How one field of an object is decoded. */
export type FieldPlan =
  /** A list whose elements are decoded one by one; a value that is not a list is left to the Schema. */
  | { readonly _tag: "Items"; readonly element: Decoder; readonly plan: DecodePlan | undefined }
  /** An object with a plan of its own. */
  | { readonly _tag: "Fields"; readonly plan: DecodePlan }
  /** Caller-defined JSON: an object or a list is taken as parsed. */
  | { readonly _tag: "Opaque" }

/**
 * How the fields of an object are decoded; fields without an entry are left to the Schema. A function chooses the plan by the
 * object. `opaque` takes the object as parsed, except for its `type`.
 */
export type DecodePlan =
  | { readonly [field: string]: FieldPlan }
  | ((value: JsonRecord) => { readonly [field: string]: FieldPlan } | "opaque")

/** A list of what a Schema decodes; its elements may have a plan of their own. */
export const items = (element: Schema.ConstraintDecoder<unknown>, plan?: DecodePlan): FieldPlan => ({
  _tag: "Items",
  element: decoderOf(element),
  plan
})

/** An object whose fields follow a plan of their own. */
export const fields = (plan: DecodePlan): FieldPlan => ({ _tag: "Fields", plan })

/** Caller-defined JSON, accepted as parsed. */
export const opaque: FieldPlan = { _tag: "Opaque" }

/** A fault and the path of the value that it is in. */
interface DecodeFault {
  readonly path: ReadonlyArray<PropertyKey>
  readonly issue: SchemaIssue.Issue
}

type ChosenPlan = { readonly [field: string]: FieldPlan } | "opaque" | undefined

const planOf = (plan: DecodePlan | undefined, value: unknown): ChosenPlan =>
  !isRecord(value) || plan === undefined ? undefined : typeof plan === "function" ? plan(value) : plan

const noTypes: Types = []

const pruneField = (field: FieldPlan, value: unknown, types: Types): unknown => {
  switch (field._tag) {
    case "Opaque":
      return typeof value === "object" && value !== null ? Array.isArray(value) ? [] : {} : value
    case "Fields":
      return prune(value, field.plan, types)
    case "Items":
      // The first element stays, for the Schema's checks of the list as a whole.
      return Array.isArray(value)
        ? value.slice(0, 1).map((first) => prune(first, field.plan, field.element.types))
        : value
  }
}

/** Returns the fields that a Schema of these types reads, without what is decoded separately. */
const prune = (value: unknown, plan: DecodePlan | undefined, types: Types): unknown => {
  const chosen = planOf(plan, value)
  if (chosen === undefined || !isRecord(value)) return value
  if (chosen === "opaque") return { type: value["type"] }
  const { named, others } = fieldsRead(types)
  const pruned: Record<PropertyKey, unknown> = others ? { ...value } : {}
  for (const name of others ? [] : named.keys()) {
    if (Object.hasOwn(value, name)) pruned[name] = Reflect.get(value, name)
  }
  for (const [name, field] of Object.entries(chosen)) {
    if (Object.hasOwn(pruned, name)) pruned[name] = pruneField(field, value[name], named.get(name) ?? noTypes)
  }
  return pruned
}

type Decoded = Result.Result<unknown, DecodeFault>

/** True if no field holds anything that is decoded separately. */
const isWhole = (value: unknown, chosen: ChosenPlan): boolean => {
  if (chosen === undefined || !isRecord(value)) return true
  if (chosen === "opaque") return false
  for (const name in chosen) {
    const field = value[name]
    if (typeof field === "object" && field !== null) return false
  }
  return true
}

/** Prefixes the path of a fault. */
const behind = (keys: ReadonlyArray<PropertyKey>, { issue, path }: DecodeFault): DecodeFault => ({
  path: [...keys, ...path],
  issue
})

/** Inserts what was decoded separately. `decoded` is fresh from a Schema, so it can be changed in place. */
function* graft(
  decoded: unknown,
  value: unknown,
  plan: DecodePlan | undefined,
  slice: Slice
): Cooperative<Decoded> {
  const chosen = planOf(plan, value)
  if (chosen === "opaque") return Result.succeed(value)
  if (chosen === undefined || !isRecord(value) || !isRecord(decoded)) return Result.succeed(decoded)
  for (const [name, field] of Object.entries(chosen)) {
    const given = value[name]
    // The Schema ignores a field that is missing from its result.
    if (!Object.hasOwn(decoded, name) || typeof given !== "object" || given === null) continue
    if (field._tag === "Opaque") {
      Reflect.set(decoded, name, given)
    } else if (field._tag === "Fields") {
      const part = yield* graft(decoded[name], given, field.plan, slice)
      if (Result.isFailure(part)) return Result.fail(behind([name], part.failure))
      Reflect.set(decoded, name, part.success)
    } else if (Array.isArray(given)) {
      const list: Array<unknown> = []
      for (let i = 0; i < given.length; i++) {
        const part = yield* decodeValue(field.element, given[i], field.plan, slice)
        if (Result.isFailure(part)) return Result.fail(behind([name, i], part.failure))
        list.push(part.success)
      }
      Reflect.set(decoded, name, list)
    }
  }
  return Result.succeed(decoded)
}

function* decodeValue(
  { decode, types }: Decoder,
  value: unknown,
  plan: DecodePlan | undefined,
  slice: Slice
): Cooperative<Decoded> {
  // An element costs more than a plain item.
  if (slice.add(10)) yield slice.end()
  const whole = isWhole(value, planOf(plan, value))
  const decoded = decode(whole ? value : prune(value, plan, types))
  if (Result.isFailure(decoded)) return Result.fail({ path: [], issue: decoded.failure.issue })
  return whole ? Result.succeed(decoded.success) : yield* graft(decoded.success, value, plan, slice)
}

/** Makes a decoder by a Schema that works in slices; its result equals the Schema's result for the whole value. */
export const planDecoder = <S extends Schema.ConstraintDecoder<unknown>>(schema: S, plan: DecodePlan) => {
  const decoder = decoderOf(schema)
  return function*(value: unknown): Cooperative<Result.Result<S["Type"], DecodeFault>> {
    const decoded = yield* decodeValue(decoder, value, plan, new Slice())
    return Result.isFailure(decoded) ? Result.fail(decoded.failure) : Result.succeed(decoded.success as S["Type"])
  }
}
