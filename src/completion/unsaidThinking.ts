/**
 * What a request says of thinking and the upstream does not hear: noted by the paths of the caller's fields.
 */
import type { Thinking } from "../domain/Conversation.ts"
import type { Driver, UpstreamModel } from "../upstream/Upstream.ts"
import type { RequestStats } from "./RequestStats.ts"

/** Notes the fields, once for all attempts. */
export const noteUnsaidThinking = (
  thinking: Thinking,
  model: UpstreamModel,
  { saysThinking }: Pick<Driver, "saysThinking">,
  stats: Pick<RequestStats, "ignored">
): void => {
  if (saysThinking?.(model, thinking) === true) return
  const ignored = stats.ignored ??= []
  for (const field of thinking.fields ?? []) {
    if (!ignored.includes(field)) ignored.push(field)
  }
}
