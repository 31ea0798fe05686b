/**
 * Calls of the admin API by the person at the page, and how the page reports their outcome.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Atom from "effect/reactivity/Atom"
import * as Semaphore from "effect/Semaphore"
import { Admin, type AdminClient, withServices } from "./client.ts"
import { causeText } from "./failure.ts"
import { texts } from "./preferences.ts"
import { reload, type Subject } from "./reads.ts"
import { registry } from "./registry.ts"

/** How the last action ended. `count` distinguishes two equal outcomes. */
export interface Outcome {
  readonly failed: boolean
  readonly text: string
  /** Takes the action back. */
  readonly undo?: (() => void) | undefined
  readonly count: number
}

export const outcomeAtom = Atom.keepAlive(Atom.make<Outcome | undefined>(undefined))

/** Reports how an action ended; with `undo`, offers to take it back. */
export const report = (text: string, failed = false, undo?: () => void): void => {
  registry.update(outcomeAtom, (last) => ({ text, failed, undo, count: (last?.count ?? 0) + 1 }))
}

/** Removes the last outcome. */
export const dismissOutcome = (): void => registry.set(outcomeAtom, undefined)

/** Copies text to the clipboard, and reports `done`, or that the browser refuses. */
export const copyText = async (text: string, done: string): Promise<void> => {
  try {
    // Undefined on a page that is not a secure context.
    const clipboard: Clipboard | undefined = navigator.clipboard
    await clipboard.writeText(text)
    report(done)
  } catch {
    report(texts().common.cannotCopy, true)
  }
}

/** Reads from the admin API. Rejects with the failure of the call. */
export const read = <A, E>(
  work: (client: AdminClient) => Effect.Effect<A, E>,
  signal: AbortSignal
): Promise<A> => Effect.runPromise(withServices(Admin.use(work)), { signal })

const oneByOne = Semaphore.makeUnsafe(1)

/** Calls the admin API, after all earlier calls have ended. The caller handles the outcome. */
export const call = <A, E>(work: (client: AdminClient) => Effect.Effect<A, E>): Promise<Exit.Exit<A, E>> =>
  Effect.runPromiseExit(withServices(Admin.use(work)).pipe(oneByOne.withPermits(1)))

/**
 * Makes a change, reads `subjects` again, and reports the outcome: `done`, with an offer to `undo` it, once the lists in sight have the
 * change, or why it failed. Resolves to the reply, or to `undefined` when the change failed.
 */
export const act = async <A, E>(
  work: (client: AdminClient) => Effect.Effect<A, E>,
  options: {
    readonly done?: (reply: A) => string
    readonly undo?: () => void
    readonly subjects?: ReadonlyArray<Subject>
  }
): Promise<A | undefined> => {
  const exit = await call(work)
  const arrived = reload(...options.subjects ?? [])
  if (Exit.isFailure(exit)) {
    report(causeText(exit.cause), true)
    return undefined
  }
  await arrived
  if (options.done !== undefined) report(options.done(exit.value), false, options.undo)
  return exit.value
}

/**
 * Makes a change for a dialog that shows refusals itself. On success it reads `subjects` again, and reports `done` once the lists in sight
 * have the change. Resolves to why the change failed, or to `undefined`.
 */
export const attempt = async <A, E>(
  work: (client: AdminClient) => Effect.Effect<A, E>,
  options: { readonly done: string; readonly subjects: ReadonlyArray<Subject> }
): Promise<string | undefined> => {
  const exit = await call(work)
  if (Exit.isFailure(exit)) return causeText(exit.cause)
  await reload(...options.subjects)
  report(options.done)
  return undefined
}
