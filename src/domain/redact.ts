/**
 * Makes an upstream's own message fit to be shown: never a page, a token or an account's identity, never too long.
 */

/** Characters of a message that a caller may see. */
export const messageLimit = 300

const patterns: ReadonlyArray<readonly [RegExp, string]> = [
  [/\bbearer\s+[^\s"',;]+/gi, "[token]"],
  [/[^\s@"'<>():,;]{1,64}@[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){1,8}/gi, "[account]"],
  [/\b(?:sk|pk|rk|key|tok|token)[-_][\w*.-]{4,}/gi, "[token]"],
  [/\beyJ[\w-]{6,}(?:\.[\w-]*){0,4}/g, "[token]"],
  // A long run that mixes letters with digits is no word of a sentence.
  [/(?<![\w-])(?=[A-Za-z_-]*\d)(?=[\d_-]*[A-Za-z])[\w-]{24,}/g, "[token]"],
  [/(?<![\w.])\+?\d{11,15}(?![\w.])/g, "[account]"]
]

const looksLikePage = (text: string): boolean => /<\s*(?:!doctype|html|head|body|script|style|title)\b/i.test(text)

/** Cuts at `limit` UTF-16 units, never inside a pair, and shows that it did. */
export const shorten = (text: string, limit: number): string => {
  if (text.length <= limit) return text
  const last = text.charCodeAt(limit - 2)
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? limit - 2 : limit - 1) + "…"
}

/** Shorter secrets are words that any sentence may have. */
const shortestSecret = 5

/**
 * The message in one line, without the `secrets` and whatever else looks like a token or an account, and at most
 * `messageLimit` long; `undefined` where nothing fit to show is left.
 */
export const redactMessage = (
  message: string | undefined,
  secrets: ReadonlyArray<string> = []
): string | undefined => {
  if (message === undefined || looksLikePage(message)) return undefined
  // Well past the limit, so that cutting first can hide no identity behind a cut.
  let text = message.slice(0, 8 * messageLimit)
  for (const secret of secrets) {
    if (secret.length >= shortestSecret) text = text.replaceAll(secret, "[secret]")
  }
  text = text.replace(/[\s\p{Cc}]+/gu, " ").trim()
  for (const [pattern, replacement] of patterns) text = text.replace(pattern, replacement)
  return text === "" ? undefined : shorten(text, messageLimit)
}
