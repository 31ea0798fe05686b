/** A pool of one credential: no limits, no queue, no health, nothing to clean up. */
import * as Effect from "effect/Effect"
import { gatewayError } from "../domain/GatewayError.ts"
import { Upstream } from "../upstream/Upstream.ts"
import { fixedCredential } from "./credentials.ts"
import type { AccountPool, Lease } from "./Lease.ts"

/** Makes the service; every lease is on `token`, whoever calls. */
export const makeFixed = Effect.fnUntraced(function*(
  token: string | undefined
): Effect.fn.Return<AccountPool, never, Upstream> {
  const upstream = yield* Upstream
  const credential = fixedCredential(token)
  let leases = 0
  let inUse = 0
  const lease = Effect.map(upstream.driver, (driver): Lease => ({
    driver,
    credential,
    account: undefined,
    identifier: undefined,
    accountHash: undefined,
    secrets: () => token === undefined ? [] : [token],
    waited: 0,
    refreshToken: Effect.void,
    report: () => Effect.void,
    usedSession: () => Effect.void
  }))
  return {
    lease: () =>
      Effect.acquireRelease(
        Effect.tap(lease, () =>
          Effect.sync(() => {
            leases++
            inUse++
          })),
        () =>
          Effect.sync(() => {
            inUse--
          })
      ),
    status: Effect.sync(() => ({
      available: 0,
      in_use: inUse,
      total: 0,
      available_accounts: [],
      in_use_accounts: [],
      max_inflight_per_account: 0,
      global_max_inflight: 0,
      recommended_concurrency: 0,
      waiting: 0,
      max_queue_size: 0,
      cooling: 0,
      out: 0,
      disabled: 0,
      reason: null,
      oldest_wait_ms: null,
      waiters: []
    })),
    withAccount: () => Effect.fail(gatewayError("not_found", "There are no accounts")),
    describe: () => Effect.succeed([]),
    setTestStatus: () => Effect.void,
    watch: () => Effect.void,
    metrics: Effect.sync(() => ({
      inUse,
      waiting: 0,
      accounts: { ready: 0, cooling: 0, out: 0, draining: 0 },
      leases,
      logins: 0,
      refreshes: 0,
      loginFailures: 0,
      sessionCleanUps: 0,
      sessionCleanUpFailures: 0
    }))
  }
})
