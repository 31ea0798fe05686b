/**
 * The order in which a pool gives its accounts with a free slot, as pure arithmetic over the facts of a slot. The scripts of the store have
 * the same (`choice_of` and the functions after it in `pool.lua`).
 *
 * `weighted` is exact: of `n` grants with all accounts free, each has its share, rounded up or down. A grant is a job of one account, which
 * may start at `start` and is due at `start + 1/weight` of a time that advances by one share of all weights at each grant. Of the jobs that
 * may start, the one that is due first comes first.
 */

/** How an upstream chooses among its accounts. */
export type Choose = "rotate" | "fill_first" | "weighted" | "spend_soonest_reset"

/** What the order depends on. */
export interface Ranked {
  /** The number of its last grant. */
  readonly lastGiven: number
  /** Its place in the configuration. */
  order: number
  priority: number
  weight: number
  /** When its next grant may start, of `weighted`. */
  start: number
  /** The earliest reset of a window of its quota that has something left, in Unix milliseconds; `undefined` if it is unknown. */
  reset: number | undefined
}

/** What the configuration says of a pool's order. */
export interface PoolChoice<in A> {
  readonly choose: Choose
  readonly of: (account: A) => { readonly priority: number; readonly weight: number }
}

/** Puts the places of accounts of one priority below the next priority: more than there are accounts. */
const places = 2 ** 20
/** Keeps accounts of equal times in the order of the configuration. */
const step = 2 ** -40
const most = 1_023
/** Accounts of an unknown reset come before all others. */
const unknown = 2 ** 43
/** Below each difference of shares, and above errors of rounding. */
const tolerance = 1e-9

export class AccountOrder {
  choose: Choose = "rotate"
  /** The time of `weighted`, and the sum of the weights. */
  #now = 0
  #sum = 1

  /** Begins anew, with the sum of the weights of all enabled accounts. */
  begin(choose: Choose, sum: number): void {
    this.choose = choose
    this.#now = 0
    this.#sum = Math.max(1, sum)
  }

  /** Adds an account to an order that is `weighted`, whose weights then have another sum. It makes up for nothing before. */
  join(account: Ranked, sum: number): void {
    this.#sum = Math.max(1, sum)
    account.start = this.#now + this.first(account)
  }

  /** Where an account begins. */
  first({ order }: Ranked): number {
    return order * step
  }

  /** Accounts are given in the order of their scores. */
  score({ lastGiven, order, priority, reset, start, weight }: Ranked): number {
    switch (this.choose) {
      case "rotate":
        return lastGiven
      case "fill_first":
        return order - priority * places
      case "weighted":
        return start + 1 / weight
      case "spend_soonest_reset":
        return reset === undefined ? lastGiven - unknown : reset + Math.min(order, most) / 2_048
    }
  }

  /** Whether the share of an account permits the next grant. Others come first while it does not. */
  isDue({ start }: Ranked): boolean {
    return start < this.#now + 1 / this.#sum - tolerance
  }

  /** An account is back in rotation: what it missed meanwhile is not made up for. */
  enters(account: Ranked): void {
    account.start = Math.max(account.start, this.#now)
  }

  /** Counts a grant. An account that was full for long makes up for one grant at most. */
  given(account: Ranked): void {
    if (this.choose !== "weighted") return
    if (!this.isDue(account)) this.#now = Math.max(this.#now, account.start)
    this.#now += 1 / this.#sum
    account.start = Math.max(account.start + 1 / account.weight, this.#now - 1 / account.weight)
  }

  /** Takes a grant back that `given` has counted, of an order that is `weighted`. */
  takenBack(account: Ranked): void {
    this.#now -= 1 / this.#sum
    account.start -= 1 / account.weight
  }
}
