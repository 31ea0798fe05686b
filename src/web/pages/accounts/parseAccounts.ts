/**
 * Parses accounts from lines of text.
 *
 * A line is an identity and its password, separated by the first tab, blanks, `----`, `,`, `;`, `|` or `:` after the
 * identity. A single word is a token. A line, or the whole text, may be JSON. Blank lines and lines that begin with `#` are
 * skipped.
 */
import { parsed, record, string } from "../../state/json.ts"

/** An account to add. Fields that are not given are absent. */
interface ParsedAccount {
  readonly email?: string
  readonly mobile?: string
  readonly password?: string
  readonly token?: string
  readonly note?: string
  readonly upstream?: string
}

/** A line with its number, from 1. `account` is `undefined` if the line cannot be parsed. */
interface ParsedLine {
  readonly line: number
  readonly account: ParsedAccount | undefined
}

const separator = /\s*(?:----|[,;|:])\s*|\s+/

/** The text before the separator as an email or a mobile; `undefined` if it is neither. */
const identityOf = (text: string): ParsedAccount | undefined => {
  if (text.includes("@")) return { email: text }
  return /^\+?\d{8,15}$/.test(text) ? { mobile: text } : undefined
}

const fields = ["email", "mobile", "password", "token", "note", "upstream"] as const

const fromJson = (value: unknown): ParsedAccount | undefined => {
  if (typeof value === "string") return value.trim() === "" ? undefined : { token: value.trim() }
  const given = record(value)
  const entries = fields.flatMap((field) => string(given[field]) === "" ? [] : [[field, given[field]]])
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}

const parseLine = (text: string): ParsedAccount | undefined => {
  if (/^[{"]/.test(text)) {
    const value = parsed(text)
    if (value !== undefined) return fromJson(value)
  }
  const found = separator.exec(text)
  if (found === null) return text.includes("@") ? { email: text } : { token: text }
  const identity = identityOf(text.slice(0, found.index))
  const rest = text.slice(found.index + found[0].length)
  if (identity !== undefined) return rest === "" ? identity : { ...identity, password: rest }
  return /\s/.test(text) ? undefined : { token: text }
}

/** The accounts of a text, in order. */
export const parseAccounts = (text: string): ReadonlyArray<ParsedLine> => {
  const whole = /^\s*[[{]/.test(text) ? parsed(text) : undefined
  if (whole !== undefined) {
    const { accounts } = record(whole)
    const all = Array.isArray(whole) ? whole : Array.isArray(accounts) ? accounts : [whole]
    return all.map((value, index) => ({ line: index + 1, account: fromJson(value) }))
  }
  return text.split(/\r\n|\r|\n/).flatMap((raw, index) => {
    const line = raw.trim()
    return line === "" || line.startsWith("#") ? [] : [{ line: index + 1, account: parseLine(line) }]
  })
}

/** Whether a text has a token of a person's login with a vendor, such as one of Claude Code or of ChatGPT (a JWT). */
export const hasLogin = (text: string): boolean => /(?:^|[^\w-])(?:sk-ant-oat|eyJ[\w-]+\.[\w-]+\.)/.test(text)
