/**
 * Runs tests of accounts: five at a time, with progress, until they end or are stopped.
 */
import * as Effect from "effect/Effect"
import * as Atom from "effect/reactivity/Atom"
import { report } from "../../state/actions.ts"
import { Admin, onSignedOut, withServices } from "../../state/client.ts"
import { causeText } from "../../state/failure.ts"
import { accountName } from "../../state/names.ts"
import { texts } from "../../state/preferences.ts"
import { reload } from "../../state/reads.ts"
import { registry } from "../../state/registry.ts"

/** The progress of running tests. */
interface Progress {
  readonly total: number
  readonly passed: number
  readonly failed: number
}

/** `undefined` while no tests run. */
export const progressAtom = Atom.keepAlive(Atom.make<Progress | undefined>(undefined))

interface Failed {
  readonly name: string
  readonly message: string
}

/** The accounts that failed the last tests of several accounts. At most as many as the gateway has accounts. */
export const failuresAtom = Atom.keepAlive(Atom.make<ReadonlyArray<Failed>>([]))

const atOnce = 5
const pageSize = 100

let stop: AbortController | undefined

/** Stops the tests and cancels the running ones. */
export const stopTests = (): void => stop?.abort()

const left = "signed out"

// The remaining tests would be refused.
onSignedOut(() => {
  stop?.abort(left)
  registry.set(failuresAtom, [])
})

const testOne = (failures: Array<Failed>) => (identifier: string) =>
  Effect.map(
    Admin.use((client) => client["admin-accounts"].test({ payload: { identifier } })),
    ({ message, response_time, success }) => ({ name: identifier, message, response_time, success })
  ).pipe(
    Effect.catchCause((cause) =>
      Effect.succeed({ name: identifier, success: false, message: causeText(cause), response_time: 0 })
    ),
    Effect.tap(({ message, name, success }) =>
      Effect.sync(() => {
        if (!success) failures.push({ name, message })
        registry.update(progressAtom, (now) =>
          now === undefined
            ? now
            : { ...now, passed: now.passed + (success ? 1 : 0), failed: now.failed + (success ? 0 : 1) })
      })
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
  const failures: Array<Failed> = []
  registry.set(failuresAtom, [])
  registry.set(progressAtom, { total: which === "all" ? 0 : which.length, passed: 0, failed: 0 })
  const work = Effect.gen(function*() {
    const identifiers = which === "all" ? yield* everyIdentifier : which
    registry.set(progressAtom, { total: identifiers.length, passed: 0, failed: 0 })
    return yield* Effect.forEach(identifiers, testOne(failures), { concurrency: atOnce })
  })
  const exit = await Effect.runPromiseExit(withServices(work), { signal: running.signal })
  const { failed, passed, total } = registry.get(progressAtom) ?? { failed: 0, passed: 0, total: 0 }
  registry.set(progressAtom, undefined)
  if (running.signal.reason === left) return
  await reload("accounts", "upstreams")
  const only = exit._tag === "Success" && which !== "all" && exit.value.length === 1 ? exit.value[0] : undefined
  if (only === undefined) registry.set(failuresAtom, [...failures])
  if (running.signal.aborted) return report(t.testsStopped(passed, failed, total))
  if (exit._tag === "Failure") return report(causeText(exit.cause), true)
  if (only === undefined) return report(t.testsDone(passed, failed))
  return report(
    only.success ? t.testPassed(only.name, only.response_time, only.message) : t.testFailed(only.name, only.message),
    !only.success
  )
}
