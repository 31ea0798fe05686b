/**
 * Changes of one entry of a map that the admin API replaces as a whole, such as the routes or the prices.
 */
import type * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { call } from "./actions.ts"
import type { AdminClient } from "./client.ts"
import { causeText } from "./failure.ts"
import { reload, type Subject } from "./reads.ts"

/** How a map is read and replaced; a replacement is bound to the revision that was read. */
export interface EntryMap<Value, Written> {
  readonly read: (
    client: AdminClient
  ) => Effect.Effect<{ readonly entries: Readonly<Record<string, Value>>; readonly revision: string }, unknown>
  readonly write: (
    client: AdminClient,
    entries: Readonly<Record<string, Value | Written>>,
    headers: { readonly "if-match": string }
  ) => Effect.Effect<unknown, unknown>
  readonly subjects: ReadonlyArray<Subject>
}

/**
 * Sets one entry of those that are configured now; `undefined` deletes it. `before` is the entry as it was shown: one that has changed
 * since is left as it is, and `changedMeanwhile` says so. Resolves to why nothing was saved, once the lists in sight have what is configured.
 */
export const saveEntry = async <Value, Written>(
  { read, subjects, write }: EntryMap<Value, Written>,
  name: string,
  before: Value | undefined,
  value: Written | undefined,
  changedMeanwhile: string
): Promise<string | undefined> => {
  const current = await call(read)
  if (Exit.isFailure(current)) return causeText(current.cause)
  const { entries, revision } = current.value
  if (JSON.stringify(entries[name]) !== JSON.stringify(before)) {
    await reload(...subjects)
    return changedMeanwhile
  }
  const { [name]: _, ...others } = entries
  const next = value === undefined ? others : { ...entries, [name]: value }
  const saved = await call((client) => write(client, next, { "if-match": `"${revision}"` }))
  await reload(...subjects)
  return Exit.isFailure(saved) ? causeText(saved.cause) : undefined
}
