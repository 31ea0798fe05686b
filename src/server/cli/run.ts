/**
 * Runs programs as the process: reports failures, sets the exit code, and stops at a signal.
 */
import * as Cause from "effect/Cause"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Runtime from "effect/Runtime"
import { isatty } from "node:tty"
import { CurrentForcedShutdown, Shutdown } from "../../config/clock/Shutdown.ts"
import { Environment } from "../../config/Environment.ts"
import { inLine } from "../../domain/printed.ts"
import { CurrentMachine, type Machine, machineOfProcess } from "../workers/Machine.ts"

/** Prints a failure as its message, and a defect with its stack. */
const report = (cause: Cause.Cause<unknown>): Effect.Effect<void> =>
  Effect.suspend(() => {
    if (Cause.hasInterruptsOnly(cause)) return Effect.void
    const failure = Cause.findErrorOption(cause)
    if (failure._tag === "None") return Console.error(Cause.pretty(cause))
    if (!Runtime.getErrorReported(failure.value)) return Effect.void
    const message = failure.value instanceof Error ? failure.value.message : String(failure.value)
    return Console.error(message.split("\n").map(inLine).join("\n"))
  })

/** Milliseconds for pending work in the event loop after the end of the program. */
const lingering = 1_000

const start = Runtime.makeRunMain(({ fiber, teardown }) => {
  fiber.addObserver((exit) =>
    teardown(exit, (code) => {
      // The process exits by itself after its output is written; an earlier exit could cut that off.
      process.exitCode = code
      setTimeout(() => process.exit(), lingering).unref()
    })
  )
})

/**
 * Runs the program. The exit code is 0 after success and 1 after a failure or a defect, unless the failure has its own.
 *
 * By default Node ends the process at a signal; `stopOnSignal` replaces that.
 */
export const runMain = <A, E>(program: Effect.Effect<A, E>): void =>
  start(Effect.tapCause(program, report), { disableErrorReporting: true })

const signals = ["SIGINT", "SIGTERM"] as const

/** Ends at the first signal, or when the parent stops this worker. A second signal forces the shutdown, if there is a listener. */
const signalled = (forced: Shutdown, machine: Machine | undefined): Effect.Effect<void> =>
  Effect.callback((resume) => {
    let ended = false
    let received = 0
    const forget = () => {
      for (const signal of signals) process.off(signal, receive)
    }
    const stop = () => {
      if (!ended && forced.hasListeners) {
        ended = true
        resume(Effect.void)
        return
      }
      forget()
      if (ended) forced.force()
      else resume(Effect.void)
    }
    const receive = () => {
      received++
      // The signal of a terminal reaches the parent too, whose message may arrive before it.
      if (machine === undefined || received > 1) stop()
      else if (!ended) machine.replace()
    }
    for (const signal of signals) process.on(signal, receive)
    machine?.watch(() => ended ? undefined : stop(), () => ended ? forced.force() : stop())
    return Effect.sync(() => {
      if (!ended) forget()
    })
  })

/**
 * Interrupts the program at the first SIGINT or SIGTERM, waits for its end, and succeeds. A second signal notifies the
 * listeners of `CurrentForcedShutdown`. Without a listener, Node's default ends the process immediately.
 */
export const stopOnSignal = <A, E, R>(
  program: Effect.Effect<A, E, R>,
  machine?: Machine
): Effect.Effect<void, E, R> =>
  Effect.suspend(() => {
    const forced = new Shutdown()
    return Effect.raceFirst(
      Effect.provideService(Effect.asVoid(program), CurrentForcedShutdown, forced),
      signalled(forced, machine)
    )
  })

/** Loads the gateway, the largest part of the code, only on demand. */
const loadService = Effect.promise(() => import("../serve.ts"))
const loadSupervisor = Effect.promise(() => import("../workers/supervise.ts"))

/** Runs the gateway, or a parent of workers, until a signal; then drains it. `variables` replace those of the process. */
export const runService = (variables: Readonly<Record<string, string>> = {}) => {
  const machine = machineOfProcess()
  // A service manager reloads services by this signal. Only a parent of workers has something to replace.
  if (!isatty(0)) process.on("SIGHUP", () => undefined)
  const program = Effect.gen(function*() {
    const environment = yield* Environment
    if (machine === undefined && environment.workers > 1) {
      return yield* (yield* loadSupervisor).supervise(environment, variables)
    }
    return yield* Effect.provideService((yield* loadService).serve, CurrentMachine, machine)
  })
  const given = ConfigProvider.layerAdd(ConfigProvider.fromEnvRecord({ ...variables }), { asPrimary: true })
  return Effect.provide(stopOnSignal(program, machine), Layer.provideMerge(Environment.layer, given))
}
