/**
 * The turns of the targets of a route whose `spread` is `weighted`: each target gets its share of the requests, exactly as accounts get
 * theirs (`accounts/choice.ts`). Of `n` requests with all targets free, each has its share, rounded up or down.
 *
 * A turn counts when it is taken, so that concurrent requests get different targets. If another target serves, it counts for that one. Each
 * process counts its own requests.
 */
import { type Route, type RouteOptions, type Target, targetName } from "../domain/routes.ts"
import { AccountOrder, type Ranked } from "./choice.ts"

class Share implements Ranked {
  readonly lastGiven = 0
  readonly priority = 0
  readonly reset = undefined
  start = 0
  readonly order: number
  readonly weight: number

  constructor(order: number, weight: number) {
    this.order = order
    this.weight = weight
  }
}

/** A request's turn. */
export interface Turn {
  /** Indices of the given targets: the one whose turn it is, then the others. */
  readonly order: ReadonlyArray<number>
  /** Says which target serves the request first. */
  readonly servedBy: (target: Target) => void
  /** The request is over. If no target has served it, its turn counts for none. */
  readonly over: () => void
}

/** The shares of one route. */
export class TargetShares {
  readonly #order = new AccountOrder()
  /** By names of targets, as many as the route has: each from the first request that may go to it. */
  readonly #shares = new Map<string, Share>()
  #sum = 0

  constructor() {
    this.#order.begin("weighted", 0)
  }

  #shareOf(target: Target): Share {
    const name = targetName(target)
    let share = this.#shares.get(name)
    if (share === undefined) {
      share = new Share(this.#shares.size + 1, target.weight ?? 1)
      this.#shares.set(name, share)
      if (target.enabled) this.#sum += share.weight
      this.#order.join(share, this.#sum)
    }
    return share
  }

  /** Takes a turn among the targets of the route that a request may go to. */
  take(targets: ReadonlyArray<Target>): Turn {
    const order = this.#order
    const shares = targets.map((target) => this.#shareOf(target))
    const ranked = shares.map((share, index) => ({
      index,
      share,
      isDue: order.isDue(share),
      score: order.score(share)
    })).sort((a, b) => Number(b.isDue) - Number(a.isDue) || a.score - b.score)
    const chosen = ranked[0]!.share
    order.given(chosen)
    let isCounted = false
    return {
      order: ranked.map(({ index }) => index),
      servedBy: (target) => {
        const share = this.#shareOf(target)
        if (!isCounted && share !== chosen) {
          order.takenBack(chosen)
          order.given(share)
        }
        isCounted = true
      },
      over: () => {
        if (!isCounted) order.takenBack(chosen)
        isCounted = true
      }
    }
  }
}

/** By the options of routes, which a change of the configuration replaces. */
const known = new WeakMap<RouteOptions, TargetShares>()

/** The shares of a route. They begin anew when the configuration changes the routes. */
export const sharesOf = ({ options }: Pick<Route, "options">): TargetShares => {
  let shares = known.get(options)
  if (shares === undefined) {
    shares = new TargetShares()
    known.set(options, shares)
  }
  return shares
}
