/** Generated operations on a pool, for tests that compare another implementation with it. */
import * as fc from "fast-check"
import type { Choose } from "../../src/placement/choice.ts"
import type { LeaseRequest, Limits } from "../../src/placement/PoolState.ts"

/** The keys of all accounts. */
export const names = ["a", "b", "c", "d", "e"]
/** How long a request waits, in milliseconds. */
export const patience = 50

/** How a pool chooses among its accounts, with priority and weight of each. */
export interface Choosing {
  readonly choose: Choose
  readonly ranks: Readonly<Record<string, { readonly priority: number; readonly weight: number }>>
}

/** For how many milliseconds beyond a delay an upstream wants no request. */
export const further = fc.constantFrom(0, 0, 60, 10_000_000)

/** An operation on a pool. */
export type Op =
  | { readonly _tag: "Request"; readonly leaseRequest: LeaseRequest }
  | { readonly _tag: "Close"; readonly nth: number }
  | {
    readonly _tag: "Suspend"
    readonly key: string
    readonly state: "cooling" | "out"
    readonly delay: number
    readonly further: number
  }
  | { readonly _tag: "Restore"; readonly key: string }
  | { readonly _tag: "Advance"; readonly by: number }
  | { readonly _tag: "Clean"; readonly key: string; readonly cleaning: boolean }
  | {
    readonly _tag: "Configure"
    readonly keys: ReadonlyArray<string>
    readonly limits: Limits
    readonly disabled: ReadonlyArray<string>
    /** Absent for rotation. */
    readonly choosing?: Choosing
  }
  | { readonly _tag: "Reset"; readonly key: string; readonly reset: number | undefined }

const key = fc.constantFrom(...names)

const leaseRequest: fc.Arbitrary<LeaseRequest> = fc.oneof(
  { weight: 5, arbitrary: fc.constant<LeaseRequest>({ _tag: "Any", avoid: new Set() }) },
  { weight: 3, arbitrary: fc.subarray(names).map((keys): LeaseRequest => ({ _tag: "Any", avoid: new Set(keys) })) },
  { weight: 3, arbitrary: key.map((key): LeaseRequest => ({ _tag: "Pinned", key })) },
  { weight: 3, arbitrary: fc.constant<LeaseRequest>({ _tag: "Direct" }) }
)

/** The initial limits. */
export const limits: fc.Arbitrary<Limits> = fc.record({
  perAccount: fc.integer({ min: 1, max: 3 }),
  global: fc.integer({ min: 1, max: 9 }),
  queue: fc.integer({ min: 0, max: 12 }),
  direct: fc.integer({ min: 1, max: 4 })
})

/** Any operation. */
export const op: fc.Arbitrary<Op> = fc.oneof(
  { weight: 10, arbitrary: fc.record({ _tag: fc.constant("Request" as const), leaseRequest }) },
  { weight: 8, arbitrary: fc.record({ _tag: fc.constant("Close" as const), nth: fc.nat(30) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      _tag: fc.constant("Suspend" as const),
      key,
      state: fc.constantFrom("cooling" as const, "out" as const),
      delay: fc.integer({ min: 0, max: 90 }),
      further
    })
  },
  { weight: 1, arbitrary: fc.record({ _tag: fc.constant("Restore" as const), key }) },
  { weight: 3, arbitrary: fc.record({ _tag: fc.constant("Advance" as const), by: fc.integer({ min: 1, max: 60 }) }) },
  { weight: 1, arbitrary: fc.record({ _tag: fc.constant("Clean" as const), key, cleaning: fc.boolean() }) },
  {
    weight: 2,
    arbitrary: fc.record({
      _tag: fc.constant("Configure" as const),
      keys: fc.shuffledSubarray(names),
      limits,
      disabled: fc.subarray(names, { maxLength: 3 })
    })
  }
)

/** Any choice but rotation. */
export const choosing: fc.Arbitrary<Choosing> = fc.record({
  choose: fc.constantFrom<Choose>("fill_first", "weighted", "spend_soonest_reset"),
  ranks: fc.tuple(
    ...names.map((name) =>
      fc.record({ priority: fc.integer({ min: -2, max: 2 }), weight: fc.integer({ min: 1, max: 5 }) })
        .map((rank) => [name, rank] as const)
    )
  ).map((ranks) => Object.fromEntries(ranks))
})

/** Any operation on a pool that need not be in rotation. */
export const orderedOp: fc.Arbitrary<Op> = fc.oneof(
  { weight: 30, arbitrary: op },
  {
    weight: 2,
    arbitrary: fc.record({
      _tag: fc.constant("Configure" as const),
      keys: fc.shuffledSubarray(names),
      limits,
      disabled: fc.subarray(names, { maxLength: 3 }),
      choosing
    })
  },
  {
    weight: 3,
    arbitrary: fc.record({
      _tag: fc.constant("Reset" as const),
      key,
      reset: fc.option(fc.integer({ min: 1, max: 5 }).map((n) => 1_800_000_000_000 + n), { nil: undefined, freq: 4 })
    })
  }
)
