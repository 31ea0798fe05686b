/**
 * What of a request had no effect, and what of the server's reply has no place in the caller's style: noted on the running request, told
 * by the reply's header, and kept in the record.
 */
import type { RequestStats } from "./RequestStats.ts"

/** Paths that are named at most; the others are counted. */
const mostPaths = 100

/** Characters of a path at most. */
const longestPath = 100

/** Characters of the header at most. */
const longestHeader = 1_000

/** A path in characters that a header may have; a comma would separate paths. */
const shown = (path: string): string => path.slice(0, longestPath).replace(/[^\x20-\x2b\x2d-\x7e]/g, "?")

/** The beginning of paths in the server's reply. */
export const replyPath = "reply"

type Noted = Pick<RequestStats, "ignored" | "ignoredMore">

/** Notes that a part of the request had no effect. `path` names it (`tools[2]`) and has none of the caller's values. */
export const noteIgnored = (stats: Noted, path: string): void => {
  const ignored = stats.ignored ??= []
  const name = shown(path)
  if (ignored.includes(name)) return
  if (ignored.length >= mostPaths) stats.ignoredMore++
  else ignored.push(name)
}

/** Takes back what was noted, for what has an effect after all. */
export const forgetIgnored = (stats: Noted, paths: ReadonlyArray<string>): void => {
  const names = new Set(paths.map(shown))
  stats.ignored = stats.ignored?.filter((name) => !names.has(name))
}

/** Notes that so many more parts had no effect. */
export const noteMoreIgnored = (stats: Noted, count: number): void => {
  stats.ignoredMore += count
}

/** Paths and the number of the others, for the header and the record. `room`: characters that the paths may have together. */
export const ignoredPaths = (
  { ignored = [], ignoredMore }: { readonly ignored: ReadonlyArray<string> | undefined; readonly ignoredMore: number },
  room = Number.POSITIVE_INFINITY
): { readonly paths: ReadonlyArray<string>; readonly more: number } => {
  let length = 0
  let count = 0
  while (count < ignored.length && length + ignored[count]!.length + 1 <= room) length += ignored[count++]!.length + 1
  return { paths: ignored.slice(0, count), more: ignored.length - count + ignoredMore }
}

/** The value of `x-gateway-ignored`; `undefined` if there is nothing to tell. The head of a stream leaves before the reply. */
export const ignoredHeader = (
  { ignored, ignoredMore, stream }: Noted & Pick<RequestStats, "stream">
): string | undefined => {
  const reported = stream ? ignored?.filter((path) => !path.startsWith(`${replyPath}.`)) : ignored
  if ((reported === undefined || reported.length === 0) && ignoredMore === 0) return undefined
  const room = longestHeader - "...+".length - String(Number.MAX_SAFE_INTEGER).length
  const { more, paths } = ignoredPaths({ ignored: reported, ignoredMore }, room)
  return [...paths, ...(more === 0 ? [] : [`...+${more}`])].join(",")
}
