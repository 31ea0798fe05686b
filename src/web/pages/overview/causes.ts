/**
 * Accounts that need attention, by the cause that they share.
 */

/** An account that needs attention. */
export interface Troubled {
  readonly name: string
  /** What it is, such as `out`, and why; accounts with equal ones have the same cause. */
  readonly state: string
  readonly reason: string | null
  /** When it is tried again, in milliseconds of the page's clock; `undefined` if that is unknown. */
  readonly backAt: number | undefined
}

export interface Cause<Account extends Troubled> {
  readonly id: string
  /** At least one, in the order that they were given in. */
  readonly accounts: readonly [Account, ...Array<Account>]
  /** When the first of them is tried again. */
  readonly nextAt: number | undefined
}

/** The causes in the order of their first accounts. */
export const causesOf = <Account extends Troubled>(
  accounts: ReadonlyArray<Account>
): ReadonlyArray<Cause<Account>> =>
  [...Map.groupBy(accounts, ({ reason, state }) => `${state} ${reason ?? ""}`.trim())].flatMap(
    ([id, [first, ...rest]]) => {
      if (first === undefined) return []
      const times = [first, ...rest].flatMap(({ backAt }) => backAt ?? [])
      return [{ id, accounts: [first, ...rest], nextAt: times.length === 0 ? undefined : Math.min(...times) }]
    }
  )
