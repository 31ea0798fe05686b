/**
 * Redacts an upstream's message: no page, token or account identity, and a bounded length.
 */

/** The most characters of a redacted message. */
export const messageLimit = 300

const patterns: ReadonlyArray<readonly [RegExp, string]> = [
  [/\bbearer\s+[^\s"',;]+/gi, "[token]"],
  [/[^\s@"'<>():,;]{1,64}@[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){1,8}/gi, "[account]"],
  [/\b(?:sk|pk|rk|key|tok|token)[-_][\w*.-]{4,}/gi, "[token]"],
  [/\beyJ[\w-]{6,}(?:\.[\w-]*){0,4}/g, "[token]"],
  // A long run of both letters and digits is a token rather than a word.
  [/(?<![\w-])(?=[A-Za-z_-]*\d)(?=[\d_-]*[A-Za-z])[\w-]{24,}/g, "[token]"],
  [/(?<![\w.])\+?\d{11,15}(?![\w.])/g, "[account]"]
]

const looksLikePage = (text: string): boolean => /<\s*(?:!doctype|html|head|body|script|style|title)\b/i.test(text)

/** Shortens a text to `limit` UTF-16 units, ending in an ellipsis, without splitting a surrogate pair. */
export const shorten = (text: string, limit: number): string => {
  if (text.length <= limit) return text
  const last = text.charCodeAt(limit - 2)
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? limit - 2 : limit - 1) + "…"
}

/** Shorter secrets are not replaced, since they may be ordinary words. */
export const shortestSecret = 5

/**
 * The message in one line of at most `messageLimit` characters, without the `secrets` and anything that looks like a token or an
 * account. Returns `undefined` for a page and for an empty result.
 */
export const redactMessage = (
  message: string | undefined,
  secrets: ReadonlyArray<string> = []
): string | undefined => {
  if (message === undefined || looksLikePage(message)) return undefined
  // Cut well beyond the limit, so that the cut cannot split an identity that is shown.
  let text = message.slice(0, 8 * messageLimit)
  for (const secret of secrets) {
    if (secret.length >= shortestSecret) text = text.replaceAll(secret, "[secret]")
  }
  text = text.replace(/[\s\p{Cc}]+/gu, " ").trim()
  for (const [pattern, replacement] of patterns) text = text.replace(pattern, replacement)
  return text === "" ? undefined : shorten(text, messageLimit)
}
