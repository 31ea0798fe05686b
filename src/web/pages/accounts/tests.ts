/**
 * Runs tests of accounts: five at a time, with progress, until they end or are stopped.
 */
import * as Effect from "effect/Effect"
import * as Atom from "effect/reactivity/Atom"
import { reload, report } from "../../state/actions.ts"
import { Admin, onSignedOut, withServices } from "../../state/client.ts"
import { causeText } from "../../state/failure.ts"
import { accountName } from "../../state/names.ts"
import { texts } from "../../state/preferences.ts"
import { registry } from "../../state/registry.ts"

/** The progress of running tests. */
interface Progress {
  readonly total: number
  readonly passed: number
  readonly failed: number
}

/** `undefined` while no tests run. */
export const progressAtom = Atom.keepAlive(Atom.make<Progress | undefined>(undefined))

const atOnce = 5
const pageSize = 100

let stop: AbortController | undefined

/** Stops the tests and cancels the running ones. */
export const stopTests = (): void => stop?.abort()

const left = "signed out"

// The remaining tests would be refused.
onSignedOut(() => stop?.abort(left))

const testOne = (identifier: string) =>
  Effect.map(
    Admin.use((client) => client["admin-accounts"].test({ payload: { identifier } })),
    ({ message, response_time, success }) => ({ message, response_time, success })
  ).pipe(
    Effect.catchCause((cause) => Effect.succeed({ success: false, message: causeText(cause), response_time: 0 })),
    Effect.tap(({ success }) =>
      Effect.sync(() =>
        registry.update(progressAtom, (now) =>
          now === undefined
            ? now
            : { ...now, passed: now.passed + (success ? 1 : 0), failed: now.failed + (success ? 0 : 1) })
      )
    )
  )

/** All identifiers, page by page. */
const everyIdentifier = Effect.gen(function*() {
  const found: Array<string> = []
  for (let page = 1, pages = 1; page <= pages; page++) {
    const list = yield* Admin.use((client) => client["admin-accounts"].list({ query: { page, page_size: pageSize } }))
    pages = list.total_pages
    found.push(...list.items.map(accountName))
  }
  return found
})

/** Tests these accounts, or all, and reports the result. */
export const runTests = async (which: ReadonlyArray<string> | "all"): Promise<void> => {
  if (registry.get(progressAtom) !== undefined) return
  const t = texts().accounts
  const running = stop = new AbortController()
  registry.set(progressAtom, { total: which === "all" ? 0 : which.length, passed: 0, failed: 0 })
  const work = Effect.gen(function*() {
    const identifiers = which === "all" ? yield* everyIdentifier : which
    registry.set(progressAtom, { total: identifiers.length, passed: 0, failed: 0 })
    return yield* Effect.forEach(identifiers, testOne, { concurrency: atOnce })
  })
  const exit = await Effect.runPromiseExit(withServices(work), { signal: running.signal })
  const { failed, passed, total } = registry.get(progressAtom) ?? { failed: 0, passed: 0, total: 0 }
  registry.set(progressAtom, undefined)
  if (running.signal.reason === left) return
  reload("accounts")
  if (running.signal.aborted) return report(t.testsStopped(passed, failed, total))
  if (exit._tag === "Failure") return report(causeText(exit.cause), true)
  const only = exit.value.length === 1 && which !== "all" ? exit.value[0] : undefined
  if (only === undefined) return report(t.testsDone(passed, failed))
  return report(
    only.success ? t.testPassed(which[0]!, only.response_time, only.message) : t.testFailed(which[0]!, only.message),
    !only.success
  )
}
