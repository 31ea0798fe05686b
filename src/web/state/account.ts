/**
 * What an account's fields say of its state.
 */
import type { AccountState } from "../parts/State.tsx"
import type { AccountItem } from "./types.ts"

/** The one word for how an account is doing. Being disabled comes first, its last test last. */
export const stateOf = (item: AccountItem): AccountState => {
  if (item.disabled) return "disabled"
  if (item.health !== "ready") return item.health
  return item.test_status === "failed" ? "failed" : "ready"
}

/** Seconds until the account is tried again; `undefined` where it waits for nothing. */
export const secondsLeft = (item: AccountItem, heardAt: number, now: number): number | undefined =>
  item.recovery_seconds === null ? undefined : Math.max(0, item.recovery_seconds - (now - heardAt) / 1000)
