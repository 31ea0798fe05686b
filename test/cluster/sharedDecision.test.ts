/**
 * Where requests go and why they are refused, in the pool that nodes share: the cases and the lists of `test/placement/decision.test.ts`, with
 * the scripts on a real server.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as fc from "fast-check"
import { Accounts } from "../../src/accounts/Accounts.ts"
import { scripts } from "../../src/cluster/store/scripts.ts"
import { Store } from "../../src/cluster/store/Store.ts"
import { sharedPools } from "../../src/config/sharedAccounts.ts"
import { SharedRevision } from "../../src/config/sharedConfig.ts"
import { follow, type Followed } from "../placement/followDecision.ts"
import { decisionCase, fullOnceFree } from "../placement/naiveDecision.ts"
import { runs } from "../support/effort.ts"
import { configOf, ScriptNodes } from "./scripts.ts"
import { TimedStore } from "./timedStore.ts"

let cluster: ScriptNodes

/** The pool of a node over an empty store. */
const atStore = (): Followed => {
  const store = new TimedStore(cluster)
  return {
    layer: Accounts.layerShared.pipe(
      Layer.provide(Layer.succeed(Store, store.shape)),
      Layer.provide(Layer.succeed(SharedRevision, {
        reach: () => Effect.void,
        newest: undefined,
        shared: undefined,
        isCurrent: () => true
      }))
    ),
    begin: (config, now) =>
      Effect.promise(async () => {
        await cluster.open()
        cluster.now = now
        await cluster.run(scripts.configure, "one", configOf(1, sharedPools(store.shape, config, undefined)))
      }),
    moved: (now) => {
      cluster.now = now
    },
    settled: store.settled,
    learnsAtEnd: true
  }
}

/**
 * A request that waits for the account on which it would stay asks again once that is refused: at its node, and so after the end of the lease
 * that led to it.
 */
const storeCase = decisionCase.map(({ steps, upstreams }) => ({
  upstreams,
  steps: steps.map((step) => step._tag === "Ask" && step.patience > 0 ? { ...step, stay: undefined } : step)
}))

describe("the decision of the pool that nodes share", () => {
  beforeAll(async () => {
    cluster = await ScriptNodes.start()
  })
  afterAll(() => cluster.stop())

  it("equals a decision by plain lists for each generated request, down to the sentence of a refusal", async () => {
    let decided = 0
    const numRuns = runs(100)
    await fc.assert(
      fc.asyncProperty(storeCase, async (one) => {
        decided += await follow(one, atStore())
      }),
      { numRuns, examples: [[fullOnceFree]] }
    )
    assert.isAbove(decided, 10 * numRuns)
  })
})
