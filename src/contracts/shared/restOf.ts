/** Walks a parsed body by its family's table, for what the body says beyond what the gateway models. */
import { type GatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import { isRecord, type Json, type JsonFields, type JsonRecord } from "../../domain/json.ts"
import { type Cooperative, Slice } from "../../domain/stream/cooperative.ts"
import { BodyVendorFields, type Entry, mostPaths } from "./BodyVendorFields.ts"
import { type Family, type Fields, type Kinds, type Row, type ServerFields, supported } from "./Family.ts"

/** What a body says beyond what the gateway models. */
export interface Rest {
  /** Fields for the server; absent without such fields. */
  readonly serverFields: ServerFields | undefined
  /** What only drivers of the family send; absent without it. */
  readonly bodyVendorFields: BodyVendorFields | undefined
  /** The paths of fields without effect. */
  readonly ignored: ReadonlyArray<string>
  /** The number of additional fields without effect. */
  readonly more: number
  readonly refused: GatewayError | undefined
}

const nothing: Rest = { serverFields: undefined, bodyVendorFields: undefined, ignored: [], more: 0, refused: undefined }

/** Fields that go to the server at most. */
const mostFields = 100

const isUnsaid = (value: unknown): boolean => value === null || value === undefined

const isEmpty = (value: unknown): boolean => isUnsaid(value) || (Array.isArray(value) && value.length === 0)

/** An object or a list that the walk is in. */
interface Place {
  readonly parent: Place | undefined
  /** The name in the parent, in the table's spelling, or the index; `undefined` at the top and for a list of one. */
  readonly key: string | number | undefined
  readonly value: JsonRecord | ReadonlyArray<unknown>
  /** The fields of an object. */
  readonly fields: Fields | undefined
  readonly keys: ReadonlyArray<string>
  /** The row of a list's elements. */
  readonly items: Row | undefined
  /** The object is an element, with vendor fields of its own. */
  readonly isElement: boolean
  next: number
  /** The unsupported fields of an object. */
  said: { [name: string]: Json } | undefined
  /** The vendor fields of an element, which are looked up by its path only once. */
  entry: Entry | undefined
}

const noKeys: ReadonlyArray<string> = []

const pathOf = ({ key, parent }: Place): string => {
  const before = parent === undefined ? "" : pathOf(parent)
  if (key === undefined) return before
  return typeof key === "number" ? `${before}[${key}]` : before === "" ? key : `${before}.${key}`
}

/** The element that a place belongs to. */
const elementOf = (place: Place): Place => place.isElement ? place : elementOf(place.parent!)

const kindOf = ({ by }: Kinds, value: JsonRecord): string | undefined => {
  const kind = typeof by === "string" ? value[by] : by(value)
  return typeof kind === "string" ? kind : undefined
}

/** The walk through one body. It looks at each value once; bounded by the body. */
class Walk {
  readonly family: Family
  private serverFields: Record<string, Json> | undefined
  private serverCount = 0
  private bodyVendorFields: BodyVendorFields | undefined
  private readonly ignored: Array<string> = []
  private more = 0
  private refused: GatewayError | undefined

  constructor(family: Family) {
    this.family = family
  }

  get rest(): Rest {
    const { ignored, more, bodyVendorFields, refused, serverFields } = this
    return serverFields === undefined && bodyVendorFields === undefined && refused === undefined && ignored.length === 0
      ? nothing
      : { serverFields, bodyVendorFields, ignored, more, refused }
  }

  enter(parent: Place | undefined, key: Place["key"], value: JsonRecord, fields: Fields, isElement: boolean): Place {
    const keys = Object.keys(value)
    return { parent, key, value, fields, keys, items: undefined, isElement, next: 0, said: undefined, entry: undefined }
  }

  /** Looks at the next value of a place. Returns where the walk goes on, and `undefined` at its end. */
  step(place: Place): Place | undefined {
    if (place.items !== undefined) return this.nextElement(place, place.items)
    const name = place.keys[place.next++]
    if (name === undefined) return place.parent
    const { spelling } = this.family
    const known = spelling === undefined ? name : spelling(name)
    const row = place.fields!.get(known)
    const value = (place.value as JsonRecord)[name]
    if (row?.fate === "supported") {
      const inner = this.descend(place, known, row, value)
      if (row.whole === true) this.sayWhole(place, known, value, inner)
      return inner ?? place
    }
    this.add(place, name, known, row, value)
    return place
  }

  private nextElement(list: Place, row: Row): Place | undefined {
    const elements = list.value as ReadonlyArray<unknown>
    const index = list.next++
    if (index >= elements.length) return list.parent
    const sent = elements[index]
    const value = row.form === undefined ? sent : row.form(sent)
    return isRecord(value) ? this.object(list, index, row, value, true) : list
  }

  /** The place within a supported value whose fields the table has. */
  private descend(place: Place, known: string, row: Row, sent: unknown): Place | undefined {
    if (row.items === undefined && row.fields === undefined && row.kinds === undefined) return undefined
    const value = row.form === undefined ? sent : row.form(sent)
    const { items } = row
    if (items === undefined) return isRecord(value) ? this.object(place, known, row, value, false) : undefined
    const isList = Array.isArray(value)
    if (!isList && !isRecord(value)) return undefined
    const list: Place = {
      parent: place,
      key: known,
      value: isList ? value : [value],
      fields: undefined,
      keys: noKeys,
      items,
      isElement: false,
      next: 0,
      said: undefined,
      entry: undefined
    }
    if (isList || row.isAlone !== true) return list
    list.next = 1
    const one = items.form === undefined ? value : items.form(value)
    return isRecord(one) ? this.object(list, undefined, items, one, true) : undefined
  }

  /** The place of an object by its table; its parent if there is nothing to look at. */
  private object(parent: Place, key: Place["key"], row: Row, value: JsonRecord, isElement: boolean): Place {
    const { fields, kinds } = row
    if (fields !== undefined) return this.enter(parent, key, value, fields, isElement)
    if (kinds === undefined) return parent
    const kind = kindOf(kinds, value)
    const own = kinds.rows.get(kind ?? "")
    // Decoders refuse these, and objects without the field that names their kind.
    if ((own === undefined && kind === undefined) || own?.fate === "refused") return parent
    if (own?.fate === "supported" && own.whole !== true) return this.object(parent, key, own, value, isElement)
    if (isElement) {
      // The place of the element, of which nothing else is looked at.
      const place = this.enter(parent, key, value, noFields, true)
      this.keepWhole(place, "", kind ?? "", own)
      return parent
    }
    const element = elementOf(parent)
    if (element.parent === undefined) this.add(parent, String(key), String(key), own ?? unknownRow, value)
    else {
      this.keepWhole(element, this.within(parent, String(key)), kind ?? "", own)
      // Nothing else of the element is looked at.
      for (let place = parent; place !== element; place = place.parent!) place.next = Infinity
      element.next = Infinity
    }
    return parent
  }

  /** The path of a field within its element. */
  private within(place: Place, name: string): string {
    return place.isElement ? name : this.within(place.parent!, `${String(place.key)}.${name}`)
  }

  /** The first name of a path within an element. */
  private topName(place: Place, name: string): string {
    return place.isElement ? name : this.topName(place.parent!, String(place.key))
  }

  private entryOf(element: Place): Entry | undefined {
    const { vendor } = this.family
    if (vendor === undefined) return undefined
    this.bodyVendorFields ??= new BodyVendorFields(vendor)
    return element.entry ??= this.bodyVendorFields.entry(pathOf(element), element.said ??= {})
  }

  private recordOf(place: Place): { [name: string]: Json } {
    if (place.said !== undefined) return place.said
    const said: { [name: string]: Json } = place.said = {}
    if (!place.isElement) this.recordOf(place.parent!)[String(place.key)] = said
    return said
  }

  private keepWhole(element: Place, inner: string, kind: string, row: Row | undefined): void {
    const entry = this.entryOf(element)
    if (entry === undefined) return
    entry.fields = element.value as JsonFields
    entry.whole = kind
    if (row?.fate === "ignorable" || row?.fate === "supported") return
    entry.notes.push({ path: inner, name: kind, required: row?.required === true ? row.why : undefined })
  }

  /** Notes a field that the gateway does not read. */
  private add(place: Place, name: string, known: string, row: Row | undefined, value: unknown): void {
    if (isUnsaid(value)) return
    const isTop = place.parent === undefined
    if (row === undefined && isTop && this.family.open) return this.pass(place, name, name, value)
    const isSilent = row?.isSilent?.(value) === true
    switch (row?.fate) {
      case "passed":
        return isSilent ? undefined : this.pass(place, name, row.as ?? known, value)
      case "refused":
        if (!isSilent) {
          const path = this.pathTo(place, known)
          this.refused ??= invalidRequest(`${path}: ${row.why ?? "is not supported"}`, path)
        }
        return
      case "ignorable":
        if (row.local !== true) this.say(place, name, value)
        return
      default:
        if (isEmpty(value)) return
        if (row?.local !== true && this.say(place, name, value)) {
          if (!isSilent) {
            this.entryOf(elementOf(place))?.notes.push({
              path: this.within(place, known) + (row?.faultIn?.(value) ?? ""),
              name: this.topName(place, name),
              required: row?.required === true ? row.why : undefined
            })
          }
        } else if (!isSilent) this.ignore(this.pathTo(place, known))
    }
  }

  /** Keeps a field for drivers of the family. Returns false if no driver can send it. */
  private say(place: Place, name: string, value: unknown): boolean {
    // An assignment to this key would set the prototype.
    if (this.family.vendor === undefined || name === "__proto__") return false
    if (isEmpty(value)) return true
    this.recordOf(place)[name] = value as Json
    this.entryOf(elementOf(place))
    return true
  }

  /** Keeps a field whole, with all that the walk finds within it. */
  private sayWhole(place: Place, known: string, value: unknown, inner: Place | undefined): void {
    if (!this.say(place, known, value) || isEmpty(value)) return
    if (inner !== undefined && inner !== place && inner.items === undefined && !inner.isElement) {
      inner.said = inner.value as { [name: string]: Json }
    }
  }

  private pass(place: Place, name: string, as: string, value: unknown): void {
    if (this.serverCount === mostFields || name === "__proto__") return this.ignore(this.pathTo(place, name))
    this.serverFields ??= {}
    if (!Object.hasOwn(this.serverFields, as)) {
      this.serverCount++
      this.serverFields[as] = value as Json
    }
    // Drivers of the openai family get it as a server field.
    if (this.family.vendor !== "openai") this.say(place, name, value)
  }

  private pathTo(place: Place, name: string): string {
    const before = pathOf(place)
    return before === "" ? name : `${before}.${name}`
  }

  private ignore(path: string): void {
    if (this.ignored.length < mostPaths) this.ignored.push(path)
    else this.more++
  }
}

const noFields: Fields = new Map()

const unknownRow: Row = { ...supported, fate: "reported" }

/** What a parsed body says beyond what the gateway models. An ordinary body has nothing of the kind. */
export function* restOf(family: Family, body: unknown): Cooperative<Rest> {
  if (!isRecord(body)) return nothing
  const slice = new Slice()
  const walk = new Walk(family)
  let place: Place | undefined = walk.enter(undefined, undefined, body, family.fields, true)
  while (place !== undefined) {
    if (slice.add(1)) yield slice.end()
    place = walk.step(place)
  }
  return walk.rest
}
