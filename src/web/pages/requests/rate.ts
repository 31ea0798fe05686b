/**
 * How fast a reply was.
 */
import type { RequestItem } from "../../state/client.ts"

/** Tokens of the reply a second, from its first event on; `undefined` where it is not known. */
export const rateOf = (
  { duration_ms, first_event_ms, usage }: Pick<RequestItem, "duration_ms" | "first_event_ms" | "usage">
): number | undefined => {
  const length = (duration_ms ?? 0) - (first_event_ms ?? 0)
  return usage === null || first_event_ms === null || length <= 0
    ? undefined
    : usage.completion_tokens / (length / 1000)
}
