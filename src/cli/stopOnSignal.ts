/**
 * An orderly end for programs that run until they are told to stop.
 */
import * as Effect from "effect/Effect"

const signals = ["SIGINT", "SIGTERM"] as const

const signalled: Effect.Effect<void> = Effect.callback((resume) => {
  const forget = () => {
    for (const signal of signals) process.off(signal, stop)
  }
  const stop = () => {
    forget()
    resume(Effect.void)
  }
  for (const signal of signals) process.on(signal, stop)
  return Effect.sync(forget)
})

/**
 * Interrupts the program at the first SIGINT or SIGTERM, waits for it to end, and succeeds. A second signal meets no
 * listener any more, so it ends the process at once.
 */
export const stopOnSignal = <A, E, R>(program: Effect.Effect<A, E, R>): Effect.Effect<void, E, R> =>
  Effect.raceFirst(Effect.asVoid(program), signalled)
