/**
 * An orderly end for programs that run until they are told to stop.
 */
import * as Effect from "effect/Effect"
import { CurrentHurry, Shutdown } from "../../config/clock/Shutdown.ts"

const signals = ["SIGINT", "SIGTERM"] as const

/** Ends at the first signal. A second one is told to `hurry`, as long as somebody listens to that. */
const signalled = (hurry: Shutdown): Effect.Effect<void> =>
  Effect.callback((resume) => {
    let told = false
    const forget = () => {
      for (const signal of signals) process.off(signal, stop)
    }
    const stop = () => {
      if (!told && hurry.isWatched) {
        told = true
        resume(Effect.void)
        return
      }
      forget()
      if (told) hurry.now()
      else resume(Effect.void)
    }
    for (const signal of signals) process.on(signal, stop)
    return Effect.sync(() => {
      if (!told) forget()
    })
  })

/**
 * Interrupts the program at the first SIGINT or SIGTERM, waits for it to end, and succeeds. A second signal asks what listens
 * to `CurrentHurry` to make haste. One that nobody listens to meets no listener any more, so it ends the process at once.
 */
export const stopOnSignal = <A, E, R>(program: Effect.Effect<A, E, R>): Effect.Effect<void, E, R> =>
  Effect.suspend(() => {
    const hurry = new Shutdown()
    return Effect.raceFirst(
      Effect.provideService(Effect.asVoid(program), CurrentHurry, hurry),
      signalled(hurry)
    )
  })
