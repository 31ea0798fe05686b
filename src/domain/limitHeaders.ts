/**
 * The headers by which servers tell what remains of an account's limits.
 */

/** Headers that go to a caller at most. */
const mostHeaders = 64

/** The names of the vendors: their limits, and of the codex ones those of usage windows and credits. */
const names =
  /^(?:anthropic-ratelimit-|x-ratelimit-|x-codex-(?:primary|secondary|credits|active-limit|limit-name|rate-limit)(?:-|$))/

/** The name of a header that a key's own limits have too. */
const ofKeys = /^x-ratelimit-/

/** The rate-limit headers of an answer; `undefined` without any. Names are in lower case. */
export const limitHeadersOf = (
  headers: Readonly<Record<string, string | Array<string> | undefined>> | undefined
): Record<string, string> | undefined => {
  if (headers === undefined) return undefined
  let found: Record<string, string> | undefined
  let count = 0
  for (const name of Object.keys(headers)) {
    const value = headers[name]
    if (value === undefined || !names.test(name) || count++ >= mostHeaders) continue
    found ??= {}
    found[name] = Array.isArray(value) ? value.join(", ") : value
  }
  return found
}

/** The headers without those whose names a key's own limits have. */
export const withoutKeyNames = (headers: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !ofKeys.test(name)))
