/**
 * What a request says of thinking and the upstream does not hear: noted by the paths of the caller's fields.
 */
import type { Thinking } from "../domain/Conversation.ts"
import type { Driver, UpstreamModel } from "../upstream/Upstream.ts"
import { noteIgnored } from "./ignored.ts"
import type { RequestStats } from "./RequestStats.ts"

/** Notes the fields, once for all attempts. */
export const noteUnsaidThinking = (
  thinking: Thinking,
  model: UpstreamModel,
  { saysThinking }: Pick<Driver, "saysThinking">,
  stats: Pick<RequestStats, "ignored" | "ignoredMore">
): void => {
  if (saysThinking?.(model, thinking) === true) return
  for (const field of thinking.fields ?? []) noteIgnored(stats, field)
}
