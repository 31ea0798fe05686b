/**
 * What an upstream does now, as every page says it.
 */
import type { UpstreamItem } from "./upstreams.ts"

/**
 * What an upstream does now, in one word. `probe`: its cooling time is over, so that one request tries it. `away`: its server does not
 * answer. `found`: it serves, and the last read of its models shows that something is wrong.
 */
export const standingOf = (
  { accounts, away, cooled_until, findings, state }: UpstreamItem,
  /** Unix time in milliseconds. */
  time: number
): "ready" | "cooled" | "probe" | "disabled" | "noAccount" | "away" | "found" =>
  state === "cooled" && cooled_until !== null && Date.parse(cooled_until) <= time
    ? "probe"
    : state !== "ready"
    ? state
    : accounts.ready === 0
    ? "noAccount"
    : away !== null
    ? "away"
    : findings.length > 0
    ? "found"
    : "ready"
