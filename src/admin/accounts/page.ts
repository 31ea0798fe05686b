/**
 * One page of the account list: newest first, clamped (spec "Account list paging").
 */
import type { Account } from "../../config/Account.ts"

export interface PageRequest {
  readonly page: number | undefined
  readonly page_size: number | undefined
  readonly q: string | undefined
}

export interface Page {
  readonly accounts: ReadonlyArray<Account>
  /** Accounts that match, over all pages. */
  readonly total: number
  readonly page: number
  readonly page_size: number
  readonly total_pages: number
}

const mostPageSize = 100
const defaultPageSize = 10

const clamp = (value: number | undefined, fallback: number, most: number): number =>
  value === undefined ? fallback : Math.min(most, Math.max(1, Math.trunc(value)))

/** What looks like a part of a mobile, without what people write between its digits. */
const digitsOf = (text: string): string => /^[+\d\s().-]+$/.test(text) ? text.replace(/\D/g, "") : ""

/** The text is part of the account's identifier, email or mobile; case does not matter, nor how a mobile is spelled. */
const matching = (text: string): (account: Account) => boolean => {
  const digits = digitsOf(text)
  return (account) =>
    account.identifier.toLowerCase().includes(text) ||
    account.identity.some((key) => key.includes(text) || (digits !== "" && key.includes(digits)))
}

/** The page asked for, of accounts in the order in which they were added. */
export const pageOf = (accounts: ReadonlyArray<Account>, request: PageRequest): Page => {
  const page = clamp(request.page, 1, Number.MAX_SAFE_INTEGER)
  const page_size = clamp(request.page_size, defaultPageSize, mostPageSize)
  const text = (request.q ?? "").trim().toLowerCase()
  const found = text === "" ? accounts : accounts.filter(matching(text))
  const end = Math.max(0, found.length - (page - 1) * page_size)
  return {
    accounts: found.slice(Math.max(0, end - page_size), end).toReversed(),
    total: found.length,
    page,
    page_size,
    total_pages: Math.max(1, Math.ceil(found.length / page_size))
  }
}
