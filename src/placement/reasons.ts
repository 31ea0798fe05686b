/**
 * Why a target of a route is left out of a request, as its record says it.
 *
 * - `not_allowed`, `login_required`: the request has no credential that the target takes.
 * - `not_binding`: it is not known to bind the request's strict schema, which its route requires.
 * - `cannot_serve`, `too_long`: its driver or its model does not take the request.
 * - `disabled`, `cooling`, `no_account`, `over_budget`, `model_paused`, `full`: its pool grants no slot (`Hindrance`).
 * - `failed`, `out`: it has failed for this request, or had no account for it.
 * - `rehearsed`: it fails in a rehearsal.
 */
export const exclusionReasons = [
  "not_allowed",
  "login_required",
  "not_binding",
  "cannot_serve",
  "too_long",
  "disabled",
  "cooling",
  "no_account",
  "over_budget",
  "model_paused",
  "full",
  "failed",
  "out",
  "rehearsed"
] as const

export type ExclusionReason = typeof exclusionReasons[number]

/** Why a pool grants no slot of a target. `no_account`: none is in rotation. `over_budget`: the upstream has used its own budget up. */
export type Hindrance = Extract<
  ExclusionReason,
  "disabled" | "cooling" | "no_account" | "over_budget" | "model_paused" | "full"
>
