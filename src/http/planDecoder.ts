/**
 * Decodes a large body by its Schema in slices, so that decoding does not block the event loop: lists element by element,
 * caller-defined JSON not at all. The result equals what the Schema makes of the whole body. How a body is taken apart follows from
 * the Schema.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import type * as SchemaIssue from "effect/SchemaIssue"
import { isRecord, type JsonRecord } from "../domain/json.ts"
import { type Cooperative, Slice } from "../domain/stream/cooperative.ts"

/**
 * The members of a union, nested unions included; else the type itself. A type that is decoded to another form, or that has checks of
 * its own, is a member without parts.
 */
const membersOf = (type: SchemaAST.AST): ReadonlyArray<SchemaAST.AST> =>
  SchemaAST.isUnion(type) && type.encoding === undefined && type.checks === undefined
    ? type.types.flatMap(membersOf)
    : SchemaAST.isSuspend(type)
    ? membersOf(type.thunk())
    : [type]

/** One type, if a value has one of several types. */
const typeOfAny = (types: ReadonlyArray<SchemaAST.AST>): SchemaAST.AST =>
  types.length === 1 ? types[0]! : new SchemaAST.Union(types)

/** A property whose value tells the members of a union apart. */
interface Discriminator {
  readonly name: string
  readonly accepts: (value: unknown) => boolean
}

/** Whether a type accepts a value, for the types of discriminators; `undefined` for other types. */
const acceptsOf = (type: SchemaAST.AST): Discriminator["accepts"] | undefined => {
  const literals = new Set<unknown>(SchemaAST.isOptional(type) ? [undefined] : [])
  let checked: Discriminator["accepts"] | undefined
  for (const member of membersOf(type)) {
    if (SchemaAST.isLiteral(member)) literals.add(member.literal)
    else if (SchemaAST.isNull(member)) literals.add(null)
    else if (SchemaAST.isString(member) && member.checks !== undefined) checked = Schema.is(Schema.make(member))
    else if (!SchemaAST.isNever(member)) return undefined
  }
  return (value) => literals.has(value) || checked?.(value) === true
}

const discriminatorsOf = ({ propertySignatures }: SchemaAST.Objects): ReadonlyArray<Discriminator> =>
  propertySignatures.flatMap(({ name, type }) => {
    const accepts = typeof name === "string" ? acceptsOf(type) : undefined
    return accepts === undefined ? [] : [{ name: String(name), accepts }]
  }).toSorted((a, b) => Number(b.name === "type") - Number(a.name === "type"))

/** How an object of a Schema is taken apart. */
class ObjectParts {
  /** What the Schema reads by name. */
  readonly fields: ReadonlyMap<string, Parts>
  /** All other fields are read too, as they were parsed. */
  readonly readsAll: boolean
  /** The object is taken as parsed, once its named fields are right. */
  readonly isOpaque: boolean

  constructor(objects: ReadonlyArray<SchemaAST.Objects>) {
    const types = new Map<string, Array<SchemaAST.AST>>()
    for (const { propertySignatures } of objects) {
      for (const { name, type } of propertySignatures) {
        if (typeof name !== "string") continue
        const known = types.get(name)
        if (known === undefined) types.set(name, [type])
        else known.push(type)
      }
    }
    this.fields = new Map([...types].map(([name, found]) => [name, partsOf(typeOfAny(found))]))
    this.readsAll = objects.every(({ indexSignatures }) => indexSignatures.length > 0)
    this.isOpaque = this.readsAll &&
      objects.every(({ indexSignatures }) => indexSignatures.every(({ type }) => SchemaAST.isUnknown(type))) &&
      ![...this.fields.values()].some((parts) => parts.hasParts)
  }

  /** True if something in the object is decoded on its own. */
  get hasParts(): boolean {
    return this.isOpaque || [...this.fields.values()].some((parts) => parts.hasParts)
  }
}

/** How the values of a type are taken apart. */
class Parts {
  readonly #type: SchemaAST.AST
  readonly #elements: ReadonlyArray<SchemaAST.AST>
  readonly #objects: ReadonlyArray<SchemaAST.Objects>
  readonly #discriminators: ReadonlyArray<ReadonlyArray<Discriminator>>
  /** By the members of the union that an object may be, each a bit. Bounded by the Schema. */
  readonly #byMembers = new Map<number, ObjectParts>()
  /** The value, or a list of any values, is caller-defined JSON, which is taken as parsed. */
  readonly #isJson: boolean
  readonly #isJsonList: boolean
  #decode: ((value: unknown) => Result.Result<unknown, Schema.SchemaError>) | undefined
  #element: Parts | undefined
  #hasParts: boolean | undefined
  /** The fields that have parts, of all members; `undefined` stands for a member that is opaque. */
  #partNames: ReadonlyArray<string | undefined> | undefined

  constructor(type: SchemaAST.AST) {
    this.#type = type
    const members = membersOf(type).filter(({ checks, encoding }) => checks === undefined && encoding === undefined)
    this.#isJson = members.some(SchemaAST.isUnknown)
    this.#elements = members.flatMap((member) => SchemaAST.isArrays(member) ? member.rest.slice(0, 1) : [])
    this.#isJsonList = this.#elements.some(SchemaAST.isUnknown)
    this.#objects = members.filter(SchemaAST.isObjects)
    this.#discriminators = this.#objects.map(discriminatorsOf)
  }

  /** Decodes a whole value. */
  decode(value: unknown): Result.Result<unknown, Schema.SchemaError> {
    this.#decode ??= Schema.decodeUnknownResult(Schema.make<Schema.Codec<unknown>>(this.#type))
    return this.#decode(value)
  }

  /** True for caller-defined JSON. */
  isParsed(value: unknown): boolean {
    return this.#isJson || (this.#isJsonList && Array.isArray(value))
  }

  /** The elements of a list that are decoded one by one; `undefined` if they are plain values, or if there is no list. */
  get element(): Parts | undefined {
    if (this.#elements.length === 0) return undefined
    this.#element ??= partsOf(typeOfAny(this.#elements))
    return this.#element.isObject ? this.#element : undefined
  }

  /** True if no member of the union has a part in an object: it has plain values only. */
  isPlain(value: JsonRecord): boolean {
    this.#partNames ??= this.#objects.flatMap((object) => {
      const { fields, isOpaque } = new ObjectParts([object])
      return isOpaque ? [undefined] : [...fields].flatMap(([name, field]) => field.hasParts ? [name] : [])
    })
    return this.#partNames.every((name) =>
      name !== undefined && (typeof value[name] !== "object" || value[name] === null)
    )
  }

  get isObject(): boolean {
    return this.#objects.length > 0
  }

  /** True if some value of the type has something that is decoded on its own. */
  get hasParts(): boolean {
    // A type that contains itself has what the rest of it has.
    if (this.#hasParts === undefined) {
      this.#hasParts = false
      this.#hasParts = this.#isJson || this.#isJsonList || this.element !== undefined ||
        (this.#objects.length > 0 && new ObjectParts(this.#objects).hasParts) ||
        this.#objects.some((object) => new ObjectParts([object]).hasParts)
    }
    return this.#hasParts
  }

  /** How an object is taken apart: by the members of the union that it may be. */
  of(value: JsonRecord): ObjectParts | undefined {
    if (this.#objects.length === 0) return undefined
    let key = 0
    for (let i = 0; i < this.#objects.length; i++) if (this.#mayBe(i, value)) key += 2 ** i
    let parts = this.#byMembers.get(key)
    if (parts === undefined) {
      const members = this.#objects.filter((_, i) => this.#mayBe(i, value))
      this.#byMembers.set(key, parts = new ObjectParts(members.length === 0 ? this.#objects : members))
    }
    return parts
  }

  #mayBe(member: number, value: JsonRecord): boolean {
    const discriminators = this.#discriminators[member]!
    for (let i = 0; i < discriminators.length; i++) {
      const { accepts, name } = discriminators[i]!
      if (!accepts(value[name])) return false
    }
    return true
  }
}

const known = new WeakMap<SchemaAST.AST, Parts>()

const partsOf = (type: SchemaAST.AST): Parts => {
  const found = known.get(type)
  if (found !== undefined) return found
  const parts = new Parts(type)
  known.set(type, parts)
  return parts
}

/** A fault and the path of the value that it is in. */
interface DecodeFault {
  readonly path: ReadonlyArray<PropertyKey>
  readonly issue: SchemaIssue.Issue
}

/** Returns what a Schema reads of a value, without what is decoded on its own. */
const prune = (value: unknown, parts: Parts): unknown => {
  if (Array.isArray(value)) {
    const { element } = parts
    if (parts.isParsed(value)) return []
    // The first element stays, for the Schema's checks of the list as a whole.
    return element === undefined ? value : value.slice(0, 1).map((first) => prune(first, element))
  }
  if (!isRecord(value)) return value
  if (parts.isParsed(value)) return {}
  const object = parts.of(value)
  if (object === undefined) return value
  const { fields, isOpaque, readsAll } = object
  const pruned: Record<string, unknown> = readsAll && !isOpaque ? { ...value } : {}
  for (const [name, field] of fields) {
    if (Object.hasOwn(value, name)) pruned[name] = field.hasParts ? prune(value[name], field) : value[name]
  }
  return pruned
}

type Decoded = Result.Result<unknown, DecodeFault>

/** True if no field holds anything that is decoded on its own. */
const isWhole = (value: unknown, parts: Parts): boolean => {
  if (!parts.hasParts) return true
  if (typeof value !== "object" || value === null) return true
  if (parts.isParsed(value)) return false
  if (!isRecord(value)) return parts.element === undefined
  if (parts.isPlain(value)) return true
  const object = parts.of(value)
  if (object === undefined) return true
  if (object.isOpaque) return false
  for (const [name, field] of object.fields) {
    if (typeof value[name] === "object" && value[name] !== null && field.hasParts) return false
  }
  return true
}

/** Prefixes the path of a fault. */
const behind = (key: PropertyKey, { issue, path }: DecodeFault): DecodeFault => ({ path: [key, ...path], issue })

/** Inserts what was decoded on its own. `decoded` is fresh from a Schema, so it can be changed in place. */
function* graft(decoded: unknown, value: unknown, parts: Parts, slice: Slice): Cooperative<Decoded> {
  if (parts.isParsed(value)) return Result.succeed(value)
  if (Array.isArray(value)) {
    const { element } = parts
    if (element === undefined) return Result.succeed(decoded)
    const list: Array<unknown> = []
    for (let i = 0; i < value.length; i++) {
      const part = yield* decodeValue(element, value[i], slice)
      if (Result.isFailure(part)) return Result.fail(behind(i, part.failure))
      list.push(part.success)
    }
    return Result.succeed(list)
  }
  const object = isRecord(value) ? parts.of(value) : undefined
  if (object?.isOpaque === true) return Result.succeed(value)
  if (object === undefined || !isRecord(value) || !isRecord(decoded)) return Result.succeed(decoded)
  for (const [name, field] of object.fields) {
    const given = value[name]
    // The Schema ignores a field that is missing from its result.
    if (!field.hasParts || !Object.hasOwn(decoded, name) || typeof given !== "object" || given === null) continue
    const part = yield* graft(decoded[name], given, field, slice)
    if (Result.isFailure(part)) return Result.fail(behind(name, part.failure))
    Reflect.set(decoded, name, part.success)
  }
  return Result.succeed(decoded)
}

function* decodeValue(parts: Parts, value: unknown, slice: Slice): Cooperative<Decoded> {
  // An element costs more than a plain item.
  if (slice.add(10)) yield slice.end()
  const whole = isWhole(value, parts)
  const decoded = parts.decode(whole ? value : prune(value, parts))
  if (Result.isFailure(decoded)) return Result.fail({ path: [], issue: decoded.failure.issue })
  return whole ? Result.succeed(decoded.success) : yield* graft(decoded.success, value, parts, slice)
}

/** Makes a decoder by a Schema that works in slices; its result equals the Schema's result for the whole value. */
export const planDecoder = <S extends Schema.ConstraintDecoder<unknown>>(schema: S) => {
  const parts = partsOf(schema.ast)
  return function*(value: unknown): Cooperative<Result.Result<S["Type"], DecodeFault>> {
    const decoded = yield* decodeValue(parts, value, new Slice())
    return Result.isFailure(decoded) ? Result.fail(decoded.failure) : Result.succeed(decoded.success as S["Type"])
  }
}
