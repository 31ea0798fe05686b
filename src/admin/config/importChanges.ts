/**
 * What an import changes: which keys and accounts come, go and change, and which groups of settings.
 */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { Account } from "../../config/Account.ts"
import { indexKeys } from "../../config/entries/keyIndex.ts"
import type { GatewayConfig } from "../../config/GatewayConfig.ts"
import { forEachCooperatively } from "../../config/json.ts"
import { formatDecimal } from "../../domain/decimal.ts"
import { tokenPreview } from "../../domain/identity.ts"
import { groupsInEffect } from "../settings/fields.ts"
import type { ImportChanges, ListChanges } from "./Api.ts"

/** The most names of removed entries that a reply lists. */
const listedNames = 100

interface Entry {
  readonly name: string
  /** Equal for equal entries. */
  readonly content: string
}

const compare = Effect.fnUntraced(function*(
  before: ReadonlyMap<string, Entry>,
  after: ReadonlyMap<string, Entry>
): Effect.fn.Return<typeof ListChanges.Type> {
  const counts = { added: 0, changed: 0, removed: 0 }
  const removed: Array<string> = []
  yield* forEachCooperatively([...after], ([id, { content }]) => {
    const known = before.get(id)
    if (known === undefined) counts.added++
    else if (known.content !== content) counts.changed++
  })
  yield* forEachCooperatively([...before], ([id, { name }]) => {
    if (after.has(id)) return
    counts.removed++
    if (removed.length < listedNames) removed.push(name)
  })
  return { before: before.size, after: after.size, ...counts, removed_names: removed }
})

const keyEntries = Effect.fnUntraced(function*(config: GatewayConfig) {
  const entries = new Map<string, Entry>()
  const { keys } = yield* indexKeys(config)
  yield* forEachCooperatively(keys, ({ id, key }) => {
    const record = config.key_records.get(id)
    entries.set(id, { name: record?.name ?? tokenPreview(key), content: JSON.stringify(record ?? null) })
  })
  return entries
})

const secret = (value: Redacted.Redacted<string> | undefined) => value === undefined ? null : Redacted.value(value)

const contentOf = (
  { budgets, disabled, email, mobile, note, organization, password, priority, proxy, token, weight }: Account
): string =>
  JSON.stringify([
    email,
    mobile,
    secret(password),
    secret(token),
    disabled,
    note,
    secret(proxy),
    organization,
    priority,
    weight,
    budgets?.map(({ cost, ...budget }) => ({ ...budget, cost: cost === undefined ? null : formatDecimal(cost) }))
  ])

const accountEntries = Effect.fnUntraced(function*({ accounts }: GatewayConfig) {
  const entries = new Map<string, Entry>()
  yield* forEachCooperatively(accounts, (account) => {
    entries.set(account.identity[0] ?? account.name, { name: account.name, content: contentOf(account) })
  })
  return entries
})

/** The difference between two configurations, in the parts that an import takes. */
export const importChanges = Effect.fnUntraced(function*(
  before: GatewayConfig,
  after: GatewayConfig
): Effect.fn.Return<typeof ImportChanges.Type> {
  const [now, then] = [groupsInEffect(before), groupsInEffect(after)]
  return {
    keys: yield* compare(yield* keyEntries(before), yield* keyEntries(after)),
    accounts: yield* compare(yield* accountEntries(before), yield* accountEntries(after)),
    settings: Object.entries(then)
      .filter(([name, group]) => JSON.stringify(group) !== JSON.stringify(now[name as keyof typeof now]))
      .map(([name]) => name)
  }
})
