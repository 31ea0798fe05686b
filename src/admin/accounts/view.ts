/**
 * Accounts as the admin API shows them: never a password, never more of a token than its beginning.
 */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { type AccountWorkFacts, noWork } from "../../accounts/AccountWork.ts"
import type { AccountFacts, AccountPool } from "../../accounts/Lease.ts"
import type { Account } from "../../config/Account.ts"
import type { GatewayConfig } from "../../config/GatewayConfig.ts"
import { shownProxy } from "../../config/hidden.ts"
import type { Role } from "../../config/schema.ts"
import type { CredentialFacts } from "../../credentials/CredentialSource.ts"
import { tokenPreview } from "../../domain/identity.ts"
import { pageOf, type PageQuery, searchText, sortedBy, viewBudgets } from "../contract.ts"
import type { AccountItem, AccountList, accountSorts, AccountState, AccountView, ChangedAccount } from "./Api.ts"

/** A configured account; a field that it does not have is an empty string. */
export const viewAccount = (account: Account, { route_table }: GatewayConfig): typeof AccountView.Type => ({
  identifier: account.identifier,
  ...(route_table.showsUpstreams ? { upstream: account.upstream } : {}),
  email: account.email ?? "",
  mobile: account.mobile ?? "",
  has_password: account.password !== undefined,
  has_token: account.token !== undefined,
  token_preview: account.token === undefined ? "" : tokenPreview(Redacted.value(account.token)),
  ...(account.proxy === undefined ? {} : { proxy: shownProxy(account.proxy)! }),
  ...(account.organization === undefined ? {} : { organization: account.organization }),
  ...(account.priority === undefined ? {} : { priority: account.priority }),
  ...(account.weight === undefined ? {} : { weight: account.weight })
})

const viewCredential = ({ expires, failure, identity, kind, renewed }: CredentialFacts) => ({
  kind,
  identity,
  expires_at: expires === undefined ? null : Math.round(expires),
  renewed_at: renewed === undefined ? null : Math.round(renewed),
  failure: failure ?? null
})

/** An account with its facts in the pool; they are `undefined` if a concurrent change has removed it from the pool. */
export const stateOf = (
  account: Account,
  facts: AccountFacts | undefined,
  config: GatewayConfig
): typeof ChangedAccount.Type => ({
  ...viewAccount(account, config),
  ...(facts === undefined ? {} : { has_token: facts.hasToken, token_preview: facts.tokenPreview }),
  hash: facts?.hash ?? "",
  test_status: facts?.testStatus ?? "",
  health: facts?.health ?? "ready",
  health_reason: facts?.reason ?? null,
  recovery_seconds: facts?.recovery === undefined ? null : Math.ceil(facts.recovery / 1000),
  ...(facts?.credential === undefined ? {} : { credential: viewCredential(facts.credential) }),
  in_use: facts?.inUse ?? 0,
  slots: config.upstreams.get(account.upstream)?.limits.perAccount ?? 0,
  disabled: account.disabled,
  note: account.note
})

/** An account with its facts in the pool and what it has done lately. */
export const itemOf = (
  account: Account,
  facts: AccountFacts | undefined,
  config: GatewayConfig,
  work: AccountWorkFacts = facts?.work ?? noWork
): typeof AccountItem.Type => ({
  ...stateOf(account, facts, config),
  last_used_at: work.lastUsedAt,
  requests_hour: work.requestsHour,
  failed_hour: work.failedHour,
  last_error: work.lastError,
  last_test: work.lastTest,
  health_since: work.heldBackSince,
  quota: (facts?.quota ?? []).map(({ room_at: _, ...window }) => window),
  budgets: viewBudgets(facts?.budgets ?? [])
})

const withoutMessage = <A extends { readonly message: string | null }>(said: A | null): A | null =>
  said === null ? null : { ...said, message: null }

/** An account as an operator of a role may see it: words of the upstream may quote a prompt, which a viewer may not read. */
export const shownTo = <A extends typeof ChangedAccount.Type>(role: Role, item: A): A =>
  role === "viewer" && item.last_error !== undefined && item.last_test !== undefined
    ? { ...item, last_error: withoutMessage(item.last_error), last_test: withoutMessage(item.last_test) }
    : item

type State = typeof AccountState.Type

/** Whether a filter of a list takes an account. `failed` is the result of the last test, whatever the account's state is. */
export const isIn = (state: State, { disabled, health, testStatus }: AccountFacts): boolean =>
  state === "failed"
    ? testStatus === "failed"
    : state === "disabled"
    ? disabled
    : !disabled && health === state

/** Accounts whose facts are read from the pool concurrently. */
const sliceLength = 500

/** The facts of accounts by their names. Other requests run between slices of the pool. */
export const describeSliced = Effect.fnUntraced(function*(
  pool: Pick<AccountPool, "describe">,
  names: ReadonlyArray<string>
) {
  const found: Array<AccountFacts> = []
  for (let start = 0; start < names.length; start += sliceLength) {
    if (start > 0) yield* Effect.yieldNow
    found.push(...yield* pool.describe(names.slice(start, start + sliceLength)))
  }
  return found
})

/**
 * The configured accounts whose facts fit, in their order, at most `most`. Other requests run between slices of the pool.
 * (`most` states its type: inferred from the generator's default it is `any` to importers.)
 */
export const accountsThat = Effect.fnUntraced(function*(
  pool: Pick<AccountPool, "describe">,
  configured: ReadonlyArray<Account>,
  fits: (facts: AccountFacts) => boolean,
  most: number = Number.POSITIVE_INFINITY
) {
  const found: Array<Account> = []
  for (let start = 0; start < configured.length && found.length < most; start += sliceLength) {
    if (start > 0) yield* Effect.yieldNow
    const slice = configured.slice(start, start + sliceLength)
    const facts = yield* pool.describe(slice.map((account) => account.name))
    const fitting = new Set(facts.filter(fits).map((each) => each.identifier))
    found.push(...slice.filter((account) => fitting.has(account.name)))
  }
  return found.length > most ? found.slice(0, most) : found
})

/** The digits of a text that looks like a part of a mobile number; empty for other texts. */
const digitsOf = (text: string): string => /^[+\d\s().-]+$/.test(text) ? text.replace(/\D/g, "") : ""

/** Whether the text is part of the account's identifier, email or mobile, in any case and any spelling of the number. */
const matching = (text: string): (account: Account) => boolean => {
  const digits = digitsOf(text)
  return (account) =>
    account.identifier.toLowerCase().includes(text) ||
    account.identity.some((key) => key.includes(text) || (digits !== "" && key.includes(digits)))
}

interface AccountQuery extends PageQuery {
  readonly upstream?: string | undefined
}

/** The accounts that a query searches for, newest first. */
export const accountsFound = (accounts: ReadonlyArray<Account>, query: AccountQuery): ReadonlyArray<Account> => {
  const text = searchText(query)
  const { upstream = "" } = query
  const within = upstream === "" ? accounts : accounts.filter((account) => account.upstream === upstream)
  const found = text === "" ? within : within.filter(matching(text))
  return found.toReversed()
}

const pageSizes = { fallback: 10, most: 100 }

/** The requested page of items, by a value that the items have; equal ones stay in their order. */
export const accountPageBySort = (
  items: ReadonlyArray<typeof AccountItem.Type>,
  sort: (typeof accountSorts)[number],
  query: AccountQuery & { readonly order?: "" | "asc" | "desc" | undefined }
) => pageOf(sortedBy(items, (item) => item[sort], query.order), query, pageSizes)

/** The requested page of accounts, newest first (spec "Account list paging"). */
export const accountPage = (accounts: ReadonlyArray<Account>, query: AccountQuery) =>
  pageOf(accountsFound(accounts, query), query, pageSizes)

/** An account in rotation needs attention if at least this share of its attempts of the last hour failed. */
const failingShare = 0.2

const filters = ["out", "failed", "cooling", "ready", "disabled"] as const

/** The place of an account in a list that begins with those that need attention. */
const urgency = (facts: AccountFacts): number => {
  if (facts.disabled) return 5
  if (facts.health === "out") return 0
  if (facts.testStatus === "failed") return 1
  if (facts.health === "cooling") return 2
  const { failedHour, requestsHour } = facts.work
  return failedHour > 0 && failedHour >= requestsHour * failingShare ? 3 : 4
}

const causeStates = ["out", "failed", "cooling"] as const

/** The cause for which an account needs attention; `undefined` for one that needs none. */
const causeStateOf = ({ disabled, health, testStatus }: AccountFacts): (typeof causeStates)[number] | undefined =>
  disabled ? undefined : health !== "ready" ? health : testStatus === "failed" ? "failed" : undefined

/** The most causes of a state, and the most names of each. */
const [mostCauses, mostNames] = [20, 20]

type Cause = NonNullable<(typeof AccountList.Type)["causes"]>[number]

const earliest = (one: number | null, other: number | null): number | null =>
  one === null || (other !== null && other < one) ? other : one

/** Collects accounts by the causes for which they need attention. It holds a cause for each reason that an account has. */
const makeCauses = () => {
  const causes = new Map<string, Omit<Cause, "names"> & { readonly names: Array<string> }>()
  return {
    add: (facts: AccountFacts): void => {
      const state = causeStateOf(facts)
      if (state === undefined) return
      const reason = facts.health === "ready" ? null : facts.reason ?? null
      const known = causes.get(`${state} ${reason}`)
      const names = known?.names ?? []
      if (names.length < mostNames) names.push(facts.identifier)
      const recovery = facts.recovery === undefined ? null : Math.ceil(facts.recovery / 1000)
      causes.set(`${state} ${reason}`, {
        state,
        reason,
        accounts: (known?.accounts ?? 0) + 1,
        names,
        recovery_seconds: earliest(known?.recovery_seconds ?? null, recovery),
        since: earliest(known?.since ?? null, facts.work.heldBackSince)
      })
    },
    list: (): ReadonlyArray<Cause> =>
      causeStates.flatMap((state) =>
        [...causes.values()].filter((cause) => cause.state === state)
          .sort((a, b) => b.accounts - a.accounts)
          .slice(0, mostCauses)
      )
  }
}

/**
 * The requested page of accounts: those that need attention first, then newest first; and how many of the searched accounts are in each
 * state, whose sum is `all`, how many failed their last test, and the causes. Reads the facts of all of them.
 */
export const accountPageByState = Effect.fnUntraced(function*(
  pool: Pick<AccountPool, "describe">,
  accounts: ReadonlyArray<Account>,
  query: AccountQuery & { readonly state?: State | "" | undefined }
) {
  const found = accountsFound(accounts, query)
  const counts = { all: found.length, out: 0, failed: 0, cooling: 0, ready: 0, disabled: 0 }
  const places = new Map<string, number>()
  const causes = makeCauses()
  yield* accountsThat(pool, found, (facts) => {
    causes.add(facts)
    for (const filter of filters) if (isIn(filter, facts)) counts[filter] += 1
    if (query.state === undefined || query.state === "" || isIn(query.state, facts)) {
      places.set(facts.identifier, urgency(facts))
    }
    return false
  })
  const listed = found.filter(({ name }) => places.has(name)).sort((a, b) => places.get(a.name)! - places.get(b.name)!)
  return { ...pageOf(listed, query, pageSizes), counts, causes: causes.list() }
})
