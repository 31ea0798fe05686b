/**
 * Hides known secrets in a server's words, which otherwise stay as they are.
 */
import { shortestSecret } from "./redact.ts"

const hiddenWord = "[hidden]"

/**
 * Finds known secrets in texts, in time linear in the text: the secrets are found by their beginnings, so that an upstream may have
 * thousands of accounts. Shorter secrets than `shortestSecret` characters may be ordinary words, and stay.
 */
export class KnownSecrets {
  /** By the first characters; the longest first. */
  readonly #byBeginning = new Map<string, Array<string>>()

  constructor(secrets: Iterable<string>) {
    for (const secret of new Set(secrets)) {
      if (secret.length < shortestSecret) continue
      const beginning = secret.slice(0, shortestSecret)
      const others = this.#byBeginning.get(beginning)
      if (others === undefined) this.#byBeginning.set(beginning, [secret])
      else others.push(secret)
    }
    for (const secrets of this.#byBeginning.values()) secrets.sort((one, other) => other.length - one.length)
  }

  /** The text with `[hidden]` in place of each secret. */
  hide(text: string): string {
    let hidden = ""
    let from = 0
    for (let at = 0; at <= text.length - shortestSecret; at++) {
      const secret = this.#byBeginning.get(text.slice(at, at + shortestSecret))
        ?.find((secret) => text.startsWith(secret, at))
      if (secret === undefined) continue
      hidden += text.slice(from, at) + hiddenWord
      from = at + secret.length
      at = from - 1
    }
    return from === 0 ? text : hidden + text.slice(from)
  }
}

/** JSON with `hide` over its texts and names. Its depth is bounded where it is read. */
export const hideIn = <Value>(value: Value, hide: (text: string) => string): Value => {
  const within = (value: unknown): unknown => {
    if (typeof value === "string") return hide(value)
    if (typeof value !== "object" || value === null) return value
    if (Array.isArray(value)) return value.map(within)
    return Object.fromEntries(Object.entries(value).map(([name, field]) => [hide(name), within(field)]))
  }
  return within(value) as Value
}
