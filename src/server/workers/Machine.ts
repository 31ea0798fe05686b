/**
 * A worker's view of the machine that it serves with others: its parent, and through it the other workers.
 */
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { announcing, socketDescriptor, type ToParent, type ToWorker, workerVariable } from "./messages.ts"

export interface Machine {
  /** The listening socket, which the parent has opened. */
  readonly descriptor: number
  /** Whether this worker prints the banner. */
  readonly announces: boolean
  /** Tells the parent that this worker serves. */
  readonly ready: () => void
  /** Completes when another worker has taken the place of this one. */
  readonly retired: Effect.Effect<void>
  /** Ends this worker as a signal does. */
  readonly end: () => void
  /** Calls `stop` when the worker shall drain, and `force` when its drain shall end. */
  readonly watch: (stop: () => void, force: () => void) => void
  /** Registers how the metrics of this worker are read. */
  readonly measures: (metrics: Effect.Effect<string>) => void
  /** Tells the parent the metrics of this worker before it ends. */
  readonly measured: Effect.Effect<void>
  /** The metrics of all workers together; `undefined` if the parent does not answer. */
  readonly metrics: Effect.Effect<string | undefined>
}

/** `undefined` in a process without workers. */
export const CurrentMachine = Context.Reference<Machine | undefined>("model-gateway/server/Machine", {
  defaultValue: () => undefined
})

/** Time for the parent to ask all workers, which is longer than its own limit. */
const patience = "3 seconds"

const makeMachine = (role: string): Machine => {
  const retired = Deferred.makeUnsafe<void>()
  const asked = new Map<number, Deferred.Deferred<string>>()
  let questions = 0
  let metrics: Effect.Effect<string> = Effect.succeed("")
  let stop = () => {}
  let force = () => {}
  // A worker without a parent ends: its place on the port belongs to the next parent.
  const tell = (message: ToParent) => {
    if (process.connected) process.send?.(message, undefined, undefined, () => undefined)
  }
  const measured = Effect.map(
    Effect.suspend(() => metrics),
    (text) => tell({ type: "metrics", metrics: text })
  )
  const receive = (message: ToWorker) => {
    switch (message.type) {
      case "retire":
        return void Deferred.doneUnsafe(retired, Effect.void)
      case "stop":
        return stop()
      case "force":
        return force()
      case "measure":
        return void Effect.runFork(measured)
      case "measured": {
        const answer = asked.get(message.id)
        if (answer !== undefined) Deferred.doneUnsafe(answer, Effect.succeed(message.metrics))
      }
    }
  }
  process.on("message", receive)
  process.on("disconnect", () => stop())
  // The parent alone replaces workers; a terminal that hangs up signals all of them.
  process.on("SIGHUP", () => undefined)
  process.channel?.unref()
  return {
    descriptor: socketDescriptor,
    announces: role === announcing,
    ready: () => tell({ type: "ready" }),
    retired: Deferred.await(retired),
    end: () => stop(),
    watch: (onStop, onForce) => {
      stop = onStop
      force = onForce
      if (!process.connected) stop()
    },
    measures: (read) => {
      metrics = read
    },
    measured,
    metrics: Effect.suspend(() => {
      const id = questions++
      const answer = Deferred.makeUnsafe<string>()
      asked.set(id, answer)
      tell({ type: "ask", id })
      return Deferred.await(answer).pipe(
        Effect.timeoutOption(patience),
        Effect.map(Option.getOrUndefined),
        Effect.ensuring(Effect.sync(() => asked.delete(id)))
      )
    })
  }
}

/** The machine of this process; `undefined` unless the process is a worker. */
export const machineOfProcess = (): Machine | undefined => {
  const role = process.env[workerVariable]
  return role !== undefined && process.send !== undefined ? makeMachine(role) : undefined
}
