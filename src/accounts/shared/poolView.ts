/** What the store tells of the pool, as the scripts `status` and `facts` give it. */
import * as Schema from "effect/Schema"

const text = Schema.String
const count = Schema.Number

/** Lists that are empty come as objects from Lua. */
const listOf = <S extends Schema.Constraint>(item: S) =>
  Schema.Union([Schema.Array(item), Schema.Record(Schema.String, Schema.Never)])

const PoolStatus = Schema.Struct({
  now: text,
  in_use: count,
  waiting: count,
  per: count,
  global: count,
  queue: count,
  total: count,
  disabled: count,
  cooling: count,
  out: count,
  spare: count,
  nodes: listOf(Schema.Struct({
    id: text,
    version: text,
    started: text,
    beat: text,
    state: text,
    revision: text,
    in_use: count,
    waiting: count
  })),
  retry: Schema.optionalKey(count),
  waiters: listOf(Schema.Struct({ age: count, style: text, account: text })),
  available: Schema.optionalKey(listOf(text)),
  used: Schema.optionalKey(listOf(text))
})
export type PoolStatus = typeof PoolStatus.Type

const decode = Schema.decodeUnknownSync(Schema.fromJsonString(PoolStatus))

/** Reads the reply of `status`. */
export const readStatus = (reply: ReadonlyArray<string>): PoolStatus => decode(reply[0] ?? "")

/** A list as one, also where it is empty. */
export const asList = <A>(list: ReadonlyArray<A> | { readonly [key: string]: never } | undefined): ReadonlyArray<A> =>
  Array.isArray(list) ? list : []

/** What the store knows of an account. */
export interface SharedFacts {
  readonly name: string
  readonly state: string
  /** Milliseconds; `undefined` while it is being tried. */
  readonly left: number | undefined
  readonly inUse: number
  readonly fault: string
  readonly tested: string
  readonly epoch: string
  readonly version: string
  /** As it lies in the store. */
  readonly token: string
}

const fields = 9

/** Reads the reply of `facts`. */
export const readFacts = (reply: ReadonlyArray<string>): ReadonlyArray<SharedFacts> =>
  Array.from({ length: Math.floor(reply.length / fields) }, (_, i) => {
    const [name = "", state = "", left, inUse, fault = "", tested = "", epoch = "0", version = "0", token = ""] = reply
      .slice(i * fields, (i + 1) * fields)
    return {
      name,
      state,
      left: left === "inf" ? undefined : Number(left),
      inUse: Number(inUse),
      fault,
      tested,
      epoch,
      version,
      token
    }
  })
