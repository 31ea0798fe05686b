/**
 * What of a request had no effect: noted on the running request.
 */
import type { RequestStats } from "./RequestStats.ts"

/** Notes that a part of the request had no effect. `path` names it (`tools[2]`) and has none of the caller's values. */
export const noteIgnored = (stats: Pick<RequestStats, "ignored">, path: string): void => {
  const ignored = stats.ignored ??= []
  ignored.push(path)
}
