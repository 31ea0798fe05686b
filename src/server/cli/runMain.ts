/**
 * Runs a program as the process: what it fails with is told in one place, and says the exit code.
 *
 * Signals are left to Node, which ends the process at once; a program that has something to finish takes the first one
 * for itself (`stopOnSignal`).
 */
import * as Cause from "effect/Cause"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Runtime from "effect/Runtime"

/** An expected failure is its message alone; only a defect shows where it happened. */
const tell = (cause: Cause.Cause<unknown>): Effect.Effect<void> =>
  Effect.suspend(() => {
    if (Cause.hasInterruptsOnly(cause)) return Effect.void
    const failure = Cause.findErrorOption(cause)
    if (failure._tag === "None") return Console.error(Cause.pretty(cause))
    if (!Runtime.getErrorReported(failure.value)) return Effect.void
    return Console.error(failure.value instanceof Error ? failure.value.message : String(failure.value))
  })

/** Time that what is left in the event loop gets once the program is over, in milliseconds. */
const lingering = 1_000

const start = Runtime.makeRunMain(({ fiber, teardown }) => {
  fiber.addObserver((exit) =>
    teardown(exit, (code) => {
      // The process ends by itself once its output is written: to end it here could cut that off.
      process.exitCode = code
      setTimeout(() => process.exit(), lingering).unref()
    })
  )
})

/** Runs the program. The exit code is 0 for success, 1 for a failure or a defect unless the failure names another. */
export const runMain = <A, E>(program: Effect.Effect<A, E>): void =>
  start(Effect.tapCause(program, tell), { disableErrorReporting: true })
