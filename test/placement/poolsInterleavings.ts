/** Generated operations on several pools, for tests that compare another implementation with them. */
import * as fc from "fast-check"
import type { PoolConfig } from "../../src/placement/Pools.ts"
import type { LeaseRequest } from "../../src/placement/PoolState.ts"
import { limits } from "./interleavings.ts"
import type { NaiveConfig, NaiveRequest } from "./naivePools.ts"

/** The names of all pools, and the keys of all accounts. */
export const names = ["default", "gpu", "hosted"]
const keysOf = (name: string) => [`${name}/a`, `${name}/b`, `${name}/c`]
export const keys = names.flatMap(keysOf)

const leaseRequest: fc.Arbitrary<LeaseRequest> = fc.oneof(
  { weight: 7, arbitrary: fc.constant<LeaseRequest>({ _tag: "Any", avoid: new Set() }) },
  { weight: 3, arbitrary: fc.subarray(keys).map((keys): LeaseRequest => ({ _tag: "Any", avoid: new Set(keys) })) },
  { weight: 1, arbitrary: fc.constantFrom(...keys).map((key): LeaseRequest => ({ _tag: "Pinned", key })) },
  { weight: 1, arbitrary: fc.constant<LeaseRequest>({ _tag: "Direct" }) }
)

/** A request; a direct caller's goes to one pool. */
export const asked: fc.Arbitrary<NaiveRequest> = fc.record({
  pools: fc.shuffledSubarray(names, { minLength: 1 }),
  leaseRequest,
  spread: fc.constantFrom("order" as const, "even" as const),
  hold: fc.boolean()
}).map((asked) => asked.leaseRequest._tag === "Direct" ? { ...asked, pools: ["default"] } : asked)

/** A configuration. */
export const configured = fc.tuple(
  ...names.map((name) =>
    fc.tuple(
      fc.constant(name),
      fc.record({
        keys: fc.shuffledSubarray(keysOf(name)),
        limits,
        disabled: fc.subarray(keysOf(name), { maxLength: 1 }),
        enabled: fc.integer({ max: 5, min: 0 }).map((n) => n > 0)
      })
    )
  )
).chain((all) => fc.shuffledSubarray(all)).map((some) => new Map<string, NaiveConfig>(some))
/** The limit of all pools. */
export const limit = fc.integer({ min: 1, max: 14 })

export const toConfig = ({ disabled, enabled, keys, limits }: NaiveConfig): PoolConfig<string> => ({
  accounts: new Map(keys.map((key) => [key, key])),
  limits,
  disabled: new Set(disabled),
  enabled,
  choice: undefined
})
