/** Events of pools: whether each upstream has an account in rotation, looked at each second while a webhook wants to know. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { UpstreamFacts } from "../../accounts/Accounts.ts"
import { UpstreamActivity } from "../../accounts/UpstreamActivity.ts"
import type { Notices } from "../../config/Notices.ts"

/** The time between two looks. */
const interval = "1 second"

/** Whether all accounts that an upstream may use are out of rotation; `undefined` for one without any. */
const isEmpty = ({ accounts: { cooling, out, ready }, state }: UpstreamFacts): boolean | undefined =>
  state === "disabled" || cooling + out + ready === 0 ? undefined : ready === 0

/** Publishes what changes from one look to the next. The first look finds nothing new. */
export const watchPools = (notices: Notices): Effect.Effect<void, never, Scope.Scope | UpstreamActivity> =>
  Effect.gen(function*() {
    const activity = yield* UpstreamActivity
    /** At most one entry for each upstream of the configuration. */
    let known = new Map<string, boolean>()
    const look = Effect.map(activity.upstreams, (facts) => {
      const seen = new Map<string, boolean>()
      for (const each of facts) {
        const empty = isEmpty(each)
        if (empty === undefined) continue
        const before = known.get(each.name) ?? empty
        seen.set(each.name, empty)
        if (empty === before) continue
        const { accounts: { cooling, out }, name } = each
        notices.publish(empty ? "pool.empty" : "pool.back", name, { upstream: name, cooling, out })
      }
      known = seen
    })
    const isWanted = () => notices.wants("pool.empty") || notices.wants("pool.back")
    const step = Effect.suspend(() => {
      if (isWanted()) return look
      known = new Map()
      return Effect.void
    })
    yield* Effect.forkScoped(Effect.forever(Effect.andThen(step, Effect.sleep(interval))))
  })
