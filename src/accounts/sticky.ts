/**
 * Where conversations were answered last, so that their next turns find the server's warm copy of what came before.
 *
 * A preference: it orders the choice among free slots and never waits. In memory at most `mostConversations`, each for as long as its
 * server keeps the prompt after the last turn; the one used longest ago goes first.
 */
import type { LeaseTarget, PlacementRequest, Stickiness } from "./Lease.ts"

const mostConversations = 10_000

/** The account that answered a conversation last. */
export interface Answered {
  readonly upstream: string
  /** The account's key within the pool. */
  readonly account: string
}

/** How often a continued conversation met its account again, and how often it did not. */
export interface StickyCounts {
  readonly hits: number
  readonly moves: number
}

/** The options of a lease for a conversation that `last` answered: a preferred target comes first and holds the request at no other. */
export const preferring = (
  options: PlacementRequest,
  last: Answered,
  prefersTarget = options.sticky?.prefersTarget === true
): PlacementRequest => {
  const { targets } = options
  if (targets === undefined || !prefersTarget) return options
  const isLast = ({ upstream }: LeaseTarget) => upstream === last.upstream
  const ordered = [...targets.filter(isLast), ...targets.filter((target) => !isLast(target))]
  return { ...options, targets: ordered, spread: "order", wait: 0 }
}

export class StickyConversations {
  private readonly now: () => number
  /** In the order of use. */
  private readonly known = new Map<string, Answered & { readonly until: number }>()
  private hits = 0
  private moves = 0

  /** `now` is the monotonic clock's milliseconds. */
  constructor(now: () => number) {
    this.now = now
  }

  /** The account that answered a conversation last, for a request that continues it. */
  lastOf({ isContinued, keys }: Stickiness): Answered | undefined {
    if (!isContinued) return undefined
    for (const key of keys) {
      const found = this.known.get(key)
      if (found === undefined) continue
      if (this.now() < found.until) return found
      this.known.delete(key)
    }
    return undefined
  }

  /** Notes the account that has answered a request; `last` is what `lastOf` returned for it. */
  answered({ keys: [key], lifetimeOf }: Stickiness, account: Answered, last: Answered | undefined): void {
    const lifetime = lifetimeOf(account.upstream)
    if (lifetime === 0) return
    if (last !== undefined) {
      if (last.account === account.account) this.hits++
      else this.moves++
    }
    this.known.delete(key)
    this.known.set(key, { ...account, until: this.now() + lifetime })
    if (this.known.size <= mostConversations) return
    for (const oldest of this.known.keys()) {
      this.known.delete(oldest)
      return
    }
  }

  counts(): StickyCounts {
    return { hits: this.hits, moves: this.moves }
  }
}
