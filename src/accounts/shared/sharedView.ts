/** What operators see of the shared pool: what the store says, and while it is lost, what it said last. */
import * as Effect from "effect/Effect"
import type { Store } from "../../cluster/store/Store.ts"
import type { ConfigStore } from "../../config/ConfigStore.ts"
import { tokenPreview } from "../../domain/identity.ts"
import type { Fault } from "../backOff.ts"
import type { AccountFacts, QueueStatus } from "../Lease.ts"
import type { PooledAccount } from "../PooledAccount.ts"
import type { Outage } from "../refusals.ts"
import type { Claims } from "./claims.ts"
import { asList, type PoolStatus, readFacts, readStatus, type SharedFacts } from "./poolView.ts"
import type { SharedRoster } from "./sharedRoster.ts"

/** Accounts that one call asks about. */
const factsAtOnce = 500

/** Makes the view of a node. */
export const makeSharedView = (
  store: Store["Service"],
  config: ConfigStore["Service"],
  roster: SharedRoster,
  claims: Claims
) => {
  let lastStatus: PoolStatus | undefined

  /** What the store knows of accounts, by their names there. */
  const factsOf = Effect.fnUntraced(function*(names: ReadonlyArray<string>) {
    const facts = new Map<string, SharedFacts>()
    for (let from = 0; from < names.length; from += factsAtOnce) {
      const some = JSON.stringify(names.slice(from, from + factsAtOnce))
      for (const fact of readFacts(yield* store.run("facts", some))) facts.set(fact.name, fact)
    }
    return facts
  })

  const shown = (account: PooledAccount, facts: SharedFacts | undefined): AccountFacts => {
    const [, , sealed = ""] = facts?.token.split(" ") ?? []
    const refused = sealed === "-"
    const opened = sealed === "" || refused ? undefined : store.open(`gw:{main}:token:${facts?.name}`, sealed)
    const token = opened ?? (refused ? undefined : account.configuredToken)
    const state = facts?.state === "cooling" || facts?.state === "out" ? facts.state : "ready"
    const fault = facts !== undefined && facts.fault !== "" ? facts.fault as Fault : undefined
    return {
      identifier: account.identifier,
      hash: account.hash,
      inUse: facts?.inUse ?? 0,
      health: state,
      disabled: account.account?.disabled ?? false,
      reason: state === "ready" || fault === undefined ? undefined : account.reasonFor(fault),
      recovery: state === "ready" ? undefined : facts?.left,
      testStatus: state === "out" ? "failed" : facts?.tested === "ok" || facts?.tested === "failed" ? facts.tested : "",
      hasToken: token !== undefined,
      tokenPreview: token === undefined ? "" : tokenPreview(token)
    }
  }

  /** The pool as the store has it; while it is lost, as it was. */
  const status = (accounts: boolean) =>
    Effect.map(Effect.option(store.run("status", accounts ? "accounts" : "")), (reply): PoolStatus | undefined => {
      if (reply._tag === "Some") lastStatus = readStatus(reply.value)
      return lastStatus
    })

  /** What keeps all accounts out of rotation, where they are; `now` is on the clock of its time. */
  const outageOf = (seen: PoolStatus | undefined, now: number): Effect.Effect<Outage | undefined> =>
    Effect.suspend(() => {
      if (seen === undefined || seen.total === 0 || seen.out < seen.total) return Effect.succeed(undefined)
      const until = seen.retry === undefined ? Infinity : now + seen.retry
      const enabled = Array.from(roster.all()).find(([, { account }]) => account?.disabled !== true)
      if (enabled === undefined) return Effect.succeed({ until, reason: undefined })
      const [name, account] = enabled
      return Effect.map(Effect.option(factsOf([name])), (facts) => {
        const fault = facts._tag === "Some" ? facts.value.get(name)?.fault ?? "" : ""
        return { until, reason: fault === "" ? undefined : account.reasonFor(fault as Fault) }
      })
    })

  /** The same, asked now. */
  const outage = (now: () => number): Effect.Effect<Outage | undefined> =>
    Effect.flatMap(status(false), (seen) => outageOf(seen, now()))

  /** The queue as the admin API shows it. */
  const queueStatus = (seen: PoolStatus | undefined, reason: string | undefined): QueueStatus => {
    const { runtime } = config.unsafeCurrent()
    const available = new Set(asList(seen?.available))
    const used = new Set(asList(seen?.used))
    const within = (names: ReadonlySet<string>) =>
      Array.from(roster.all()).flatMap(([name, account]) => names.has(name) ? [account.identifier] : [])
    const waiters = asList(seen?.waiters).map(({ account, age, style }) => ({
      age_ms: Math.round(age),
      style,
      account: account === "" ? null : roster.named(account)?.identifier ?? null
    }))
    const total = roster.size() === 0 ? 0 : seen?.total ?? roster.size()
    return {
      available: roster.size() === 0 ? 0 : seen?.spare ?? 0,
      in_use: seen?.in_use ?? claims.inUse(),
      total,
      available_accounts: within(available),
      in_use_accounts: within(used),
      max_inflight_per_account: seen?.per ?? runtime.account_max_inflight,
      global_max_inflight: seen?.global ?? runtime.global_max_inflight,
      recommended_concurrency: total * (seen?.per ?? runtime.account_max_inflight),
      waiting: seen?.waiting ?? claims.waiting(),
      max_queue_size: seen?.queue ?? runtime.account_max_queue,
      cooling: seen?.cooling ?? 0,
      out: seen?.out ?? 0,
      disabled: seen?.disabled ?? 0,
      reason: reason ?? null,
      oldest_wait_ms: waiters[0]?.age_ms ?? null,
      waiters
    }
  }

  /** The queue as it is now. */
  const queue: Effect.Effect<QueueStatus> = Effect.flatMap(
    status(true),
    (seen) => Effect.map(outageOf(seen, 0), (found) => queueStatus(seen, found?.reason))
  )

  return { factsOf, shown, status, outage, queue }
}
