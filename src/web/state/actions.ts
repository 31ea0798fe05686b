/**
 * Changes that the person at the page makes: one after another, each with its outcome told.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Atom from "effect/reactivity/Atom"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as Semaphore from "effect/Semaphore"
import type { AdminClient } from "./client.ts"
import { Admin, withServices } from "./client.ts"
import { causeText } from "./failure.ts"
import { registry } from "./registry.ts"

/** How the last action ended. `count` tells two equal outcomes apart. */
export interface Outcome {
  readonly failed: boolean
  readonly text: string
  readonly count: number
}

export const outcomeAtom = Atom.keepAlive(Atom.make<Outcome | undefined>(undefined))

/** Tells how an action ended. */
export const tell = (text: string, failed = false): void => {
  registry.update(outcomeAtom, (last) => ({ text, failed, count: (last?.count ?? 0) + 1 }))
}

/** Takes the last outcome away. */
export const dismissOutcome = (): void => registry.set(outcomeAtom, undefined)

/** How many changes are under way or wait for those before them. */
export const busyAtom = Atom.keepAlive(Atom.make(0))

/** What is read anew after a change. */
export type Subject =
  | "accounts"
  | "keys"
  | "config"
  | "settings"
  | "captures"
  | "samples"
  | "host"
  | "requests"
  | "usage"

/** Reads these subjects anew wherever they are shown. */
export const reload = (...subjects: ReadonlyArray<Subject>): void => {
  Effect.runFork(Effect.ignore(withServices(Reactivity.invalidate(subjects))))
}

/** Reads from the admin API, for a view that keeps what it read by itself. Rejects with what the call failed with. */
export const read = <A, E>(
  work: (client: AdminClient) => Effect.Effect<A, E>,
  signal: AbortSignal
): Promise<A> => Effect.runPromise(withServices(Admin.use(work)), { signal })

const oneByOne = Semaphore.makeUnsafe(1)

/** Calls the admin API for a view that handles the outcome by itself. Calls wait for those made before. */
export const call = <A, E>(work: (client: AdminClient) => Effect.Effect<A, E>): Promise<Exit.Exit<A, E>> => {
  registry.update(busyAtom, (count) => count + 1)
  return Effect.runPromiseExit(
    withServices(Admin.use(work)).pipe(
      oneByOne.withPermits(1),
      Effect.ensuring(Effect.sync(() => registry.update(busyAtom, (count) => count - 1)))
    )
  )
}

/**
 * Makes a change and tells how it ended: by `done`, or by the reason why not. `subjects` are read anew afterwards.
 * Resolves to the reply, or to `undefined` where the change failed.
 */
export const act = async <A, E>(
  work: (client: AdminClient) => Effect.Effect<A, E>,
  options: { readonly done?: (reply: A) => string; readonly subjects?: ReadonlyArray<Subject> }
): Promise<A | undefined> => {
  const exit = await call(work)
  if (options.subjects !== undefined) reload(...options.subjects)
  if (Exit.isFailure(exit)) {
    tell(causeText(exit.cause), true)
    return undefined
  }
  if (options.done !== undefined) tell(options.done(exit.value))
  return exit.value
}
