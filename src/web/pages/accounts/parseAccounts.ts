/**
 * Accounts from lines of text, as people keep them.
 *
 * A line is an identity and its password, apart by a tab, blanks, `----`, `,`, `;`, `|` or `:`, whichever stands first
 * behind the identity. One word alone is a token. A line, or the whole text, may be JSON. Blank lines and lines that begin
 * with `#` are left out.
 */

/** An account to add; what is not given is absent. */
export interface ParsedAccount {
  readonly email?: string
  readonly mobile?: string
  readonly password?: string
  readonly token?: string
  readonly note?: string
}

/** A line with its number, from 1; `account` is `undefined` where the line cannot be understood. */
export interface ParsedLine {
  readonly line: number
  readonly account: ParsedAccount | undefined
}

const separator = /\s*(?:----|[,;|:])\s*|\s+/

/** What stands in front of the separator: an email or a mobile, else `undefined`. */
const identityOf = (text: string): ParsedAccount | undefined => {
  if (text.includes("@")) return { email: text }
  return /^\+?\d{8,15}$/.test(text) ? { mobile: text } : undefined
}

const fields = ["email", "mobile", "password", "token", "note"] as const

const fromJson = (value: unknown): ParsedAccount | undefined => {
  if (typeof value === "string") return value.trim() === "" ? undefined : { token: value.trim() }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined
  const given = value as Readonly<Record<string, unknown>>
  const entries = fields.flatMap((field) => {
    const text = given[field]
    return typeof text === "string" && text !== "" ? [[field, text]] : []
  })
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}

const json = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const parseLine = (text: string): ParsedAccount | undefined => {
  if (/^[{"]/.test(text)) {
    const value = json(text)
    if (value !== undefined) return fromJson(value)
  }
  const found = separator.exec(text)
  if (found === null) return text.includes("@") ? { email: text } : { token: text }
  const identity = identityOf(text.slice(0, found.index))
  const rest = text.slice(found.index + found[0].length)
  if (identity !== undefined) return rest === "" ? identity : { ...identity, password: rest }
  return /\s/.test(text) ? undefined : { token: text }
}

/** The accounts of a text, in their order. */
export const parseAccounts = (text: string): ReadonlyArray<ParsedLine> => {
  if (/^\s*[[{]/.test(text)) {
    const whole = json(text)
    const list = Array.isArray(whole)
      ? whole
      : typeof whole === "object" && whole !== null && "accounts" in whole && Array.isArray(whole.accounts)
      ? whole.accounts
      : whole === undefined
      ? undefined
      : [whole]
    if (list !== undefined) return list.map((value, index) => ({ line: index + 1, account: fromJson(value) }))
  }
  return text.split(/\r\n|\r|\n/).flatMap((raw, index) => {
    const line = raw.trim()
    return line === "" || line.startsWith("#") ? [] : [{ line: index + 1, account: parseLine(line) }]
  })
}
