/**
 * What is read from the admin API to be shown: each read ends, one that failed is tried again, and what saves waits until the lists in
 * sight have arrived.
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as AsyncResult from "effect/reactivity/AsyncResult"
import * as Atom from "effect/reactivity/Atom"
import type { AtomHttpApiClient } from "effect/reactivity/AtomHttpApi"
import * as AtomRegistry from "effect/reactivity/AtomRegistry"
import * as Reactivity from "effect/reactivity/Reactivity"
import { useEffect, useRef } from "preact/hooks"
import type { AdminApi } from "../../api.ts"
import { Admin, type GroupOf, withServices } from "./client.ts"
import { isRefusal } from "./failure.ts"
import { registry } from "./registry.ts"

/** What is read again after a change. */
export type Subject =
  | "accounts"
  | "keys"
  | "config"
  | "settings"
  | "upstreams"
  | "routes"
  | "captures"
  | "samples"
  | "webhooks"
  | "host"

/** Milliseconds after which a read that failed is tried again, by how often it failed before; from then on the last one. */
export const retryPauses = [5_000, 15_000, 60_000] as const

/** The pause before the next try after so many failures in a row, in milliseconds. */
export const pauseAfter = (failures: number): number =>
  retryPauses[Math.min(failures, retryPauses.length) - 1] ?? retryPauses[0]

const failing = new Set<object>()

/** How many of the reads that are shown have failed. */
export const failingAtom = Atom.keepAlive(Atom.make(0))

/** Marks a read as failed until the returned function is called. */
export const markFailed = (read: object): () => void => {
  // An atom must not change while another one is made.
  const count = () => queueMicrotask(() => registry.set(failingAtom, failing.size))
  failing.add(read)
  count()
  return () => {
    failing.delete(read)
    count()
  }
}

/** Why a read failed, in words. Each failure is an object of its own. */
export interface Failed {
  readonly text: string
}

/** Tries a read again after each failure of it, for as long as the view is shown. */
export const useRetry = (failure: Failed | undefined, retry: () => void): void => {
  const failures = useRef(0)
  useEffect(() => {
    if (failure === undefined) {
      failures.current = 0
      return
    }
    failures.current += 1
    const unmark = markFailed(failures)
    const timer = setTimeout(retry, pauseAfter(failures.current))
    return () => {
      unmark()
      clearTimeout(timer)
    }
  }, [failure])
}

export type Read = Atom.Atom<AsyncResult.AsyncResult<unknown, unknown>>

/** A read that is tried again while it is shown. What the gateway refuses as wrong stays refused. */
const persistent = Atom.family((read: Read): Read => {
  let failures = 0
  return Atom.transform(read, (get) => {
    const result = get(read)
    if (AsyncResult.isSuccess(result)) failures = 0
    if (!AsyncResult.isFailure(result) || isRefusal(result.cause)) return result
    get.addFinalizer(markFailed(read))
    if (!result.waiting) {
      failures += 1
      const timer = setTimeout(() => get.refresh(read), pauseAfter(failures))
      get.addFinalizer(() => clearTimeout(timer))
    }
    return result
  })
})

const subjectsOf = new WeakMap<object, ReadonlyArray<unknown>>()

interface Asked {
  readonly group: string
  readonly endpoint: string
  readonly reactivityKeys?: ReadonlyArray<Subject>
  readonly timeToLive?: Duration.Input
}

/** The read of each question. */
const askedOf = Atom.family(({ endpoint, group, reactivityKeys = [], timeToLive, ...request }: Asked): Read => {
  const read = Admin.runtime.factory.withReactivity(reactivityKeys)(
    Admin.runtime.atom(Admin.use((client) => client[group as "admin-keys"][endpoint as "list"](request as never)))
  )
  return timeToLive === undefined ? read : Atom.setIdleTTL(read, timeToLive)
})

/** A read of the admin API as an atom, which is read again when one of its `reactivityKeys` changes. */
export const readOf = ((group: string, endpoint: string, request: Omit<Asked, "group" | "endpoint">) => {
  const read = persistent(askedOf({ ...request, group, endpoint }))
  subjectsOf.set(read, request.reactivityKeys ?? [])
  return read
}) as unknown as AtomHttpApiClient<Admin, "console/Admin", GroupOf<typeof AdminApi>>["query"]

/** The reads that are shown, each with its subjects. */
const shownReads = (): ReadonlyArray<readonly [read: Read, subjects: ReadonlyArray<unknown>]> =>
  [...registry.getNodes().values()].flatMap(({ atom, children, listeners }) => {
    const subjects = subjectsOf.get(atom)
    return subjects !== undefined && listeners.size + children.size > 0 ? [[atom as Read, subjects]] : []
  })

/** The reads of these subjects that are shown. */
const shownOf = (subjects: ReadonlyArray<Subject>): ReadonlyArray<Read> =>
  shownReads().flatMap(([read, of]) => subjects.some((subject) => of.includes(subject)) ? [read] : [])

/** Reads everything that is shown again. */
export const readAllAgain = (): void => shownReads().forEach(([read]) => registry.refresh(read))

/** Resolves when a read has ended. */
const ended = (read: Read) => Effect.exit(AtomRegistry.getResult(registry, read, { suspendOnWaiting: true }))

/** Reads again, and resolves when that has ended. */
export const readAgain = <A, E>(read: Atom.Atom<AsyncResult.AsyncResult<A, E>>): Promise<Exit.Exit<A, E>> => {
  registry.refresh(read)
  return Effect.runPromiseExit(AtomRegistry.getResult(registry, read, { suspendOnWaiting: true }))
}

/** The longest time that a saved change waits for the lists that show it, in milliseconds. */
const longestArrival = 1_000

/** Reads these subjects again wherever they are shown. Resolves when they have arrived, at most a second later. */
export const reload = (...subjects: ReadonlyArray<Subject>): Promise<void> =>
  Effect.andThen(
    Reactivity.invalidate(subjects),
    Effect.suspend(() => Effect.forEach(shownOf(subjects), ended, { concurrency: "unbounded", discard: true }))
  ).pipe(
    Effect.timeoutOption(longestArrival),
    withServices,
    Effect.ignoreCause,
    Effect.runPromise
  )
