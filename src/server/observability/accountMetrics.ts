/**
 * The accounts of the pool by their hashes, in the Prometheus text format: written when they are asked for, since accounts
 * come and go and a registry keeps every series that it has ever had.
 */
import type { AccountFacts } from "../../accounts/Accounts.ts"

/** Accounts that have series of their own. */
export const mostAccounts = 1_000

/** Gauges of the first accounts: whether each is in rotation, and how many of its slots are taken. */
export const accountMetrics = (facts: ReadonlyArray<AccountFacts>): string => {
  if (facts.length === 0) return ""
  const family = (name: string, help: string, valueOf: (account: AccountFacts) => number) => [
    `# HELP ${name} ${help}`,
    `# TYPE ${name} gauge`,
    ...facts.slice(0, mostAccounts).map((account) => `${name}{account="${account.hash}"} ${valueOf(account)}`)
  ]
  return [
    ...family(
      "gateway_account_ready",
      "Whether an account is in rotation",
      ({ disabled, health }) => health === "ready" && !disabled ? 1 : 0
    ),
    ...family("gateway_account_slots_in_use", "Slots of an account that are taken", ({ inUse }) => inUse),
    ""
  ].join("\n")
}
