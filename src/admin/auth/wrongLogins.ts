/**
 * Counts wrong credentials by address, in windows of a minute. Bounded: when too many addresses are known, those that
 * began earliest are forgotten.
 */

/** Wrong credentials that an address has in a window before it is told to wait. */
export const wrongLoginsAMinute = 5

const windowMillis = 60_000
const mostAddresses = 10_000

export interface WrongLogins {
  /** Whether an address has had its wrong ones. */
  readonly isOver: (address: string, now: number) => boolean
  /** Counts a wrong one; milliseconds until the window ends where the address is over its limit, else `undefined`. */
  readonly count: (address: string, now: number) => number | undefined
}

/** Makes a count. `now` is in milliseconds and never goes back by much. */
export const makeWrongLogins = (): WrongLogins => {
  /** In the order in which the windows began. */
  const windows = new Map<string, { count: number; readonly ends: number }>()

  const forget = (now: number) => {
    for (const [address, { ends }] of windows) {
      if (ends > now && windows.size < mostAddresses) return
      windows.delete(address)
    }
  }

  return {
    isOver: (address, now) => {
      const window = windows.get(address)
      return window !== undefined && window.ends > now && window.count >= wrongLoginsAMinute
    },
    count: (address, now) => {
      let window = windows.get(address)
      if (window === undefined || window.ends <= now) {
        windows.delete(address)
        forget(now)
        window = { count: 0, ends: now + windowMillis }
        windows.set(address, window)
      }
      window.count++
      return window.count > wrongLoginsAMinute ? window.ends - now : undefined
    }
  }
}
