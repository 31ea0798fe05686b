/**
 * Waits that a server states for longer than its accounts are left alone by themselves. A 429 that names no limit of the account is of the
 * model: servers with keys limit each model apart, so that the account's other models go on.
 */
import { backOff } from "../accounts/backOff.ts"
import type { Lease } from "../accounts/Lease.ts"
import type { Classification } from "../domain/classifyUpstreamFailure.ts"

/** Whether a failure states a far wait that is of the model. The accounts of a driver with logins are people, whose limits are their own. */
export const isFarOfModel = (
  { driver }: Pick<Lease, "driver">,
  { class: is, health, retryAfter = 0 }: Pick<Classification, "class" | "health" | "retryAfter">
): boolean =>
  is === "rate_limited" && health === "rate_limited" && driver.capabilities.login === undefined &&
  retryAfter * 1_000 > backOff.rate_limited.longest
