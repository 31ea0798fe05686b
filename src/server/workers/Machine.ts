/**
 * A worker's view of the machine that it serves with others: its parent, and through it the other workers.
 */
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { fstatSync, writeSync } from "node:fs"
import { announcing, beatInterval, socketDescriptor, type ToParent, type ToWorker, workerVariable } from "./messages.ts"

export interface Machine {
  /** The listening socket, which the parent has opened. */
  readonly descriptor: number
  /** Whether this worker prints the banner. */
  readonly announces: boolean
  /** Notifies the parent that this worker serves. */
  readonly ready: () => void
  /** Requests another worker in the place of this one. */
  readonly replace: () => void
  /** Completes when another worker has taken the place of this one. */
  readonly retired: Effect.Effect<void>
  /** False once the parent is gone. */
  readonly hasParent: () => boolean
  /** Ends this worker as the parent does. */
  readonly end: () => void
  /** Calls `stop` when the parent requests a drain, and `force` when it ends the drain early. */
  readonly watch: (stop: () => void, force: () => void) => void
  /** Registers how the metrics of this worker are read. */
  readonly registerMetrics: (metrics: Effect.Effect<string>) => void
  /** Sends the metrics of this worker to the parent. */
  readonly sendMetrics: Effect.Effect<void>
  /** The metrics of all workers together; `undefined` if the parent does not answer. */
  readonly metrics: Effect.Effect<string | undefined>
}

/** `undefined` in a process without workers. */
export const CurrentMachine = Context.Reference<Machine | undefined>("model-gateway/server/Machine", {
  defaultValue: () => undefined
})

/** Timeout of a request for the metrics of all workers. Longer than the parent's own timeouts. */
const metricsTimeout = "5 seconds"

const makeMachine = (role: string): Machine => {
  const retired = Deferred.makeUnsafe<void>()
  const requests = new Map<number, Deferred.Deferred<string>>()
  let sent = 0
  let metrics: Effect.Effect<string> = Effect.succeed("")
  let stop = () => {}
  let force = () => {}
  const send = (message: ToParent) => {
    if (process.connected) process.send?.(message, undefined, undefined, () => undefined)
  }
  const sendMetrics = Effect.map(
    Effect.suspend(() => metrics),
    (text) => send({ type: "metrics", metrics: text })
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
        return void Effect.runFork(sendMetrics)
      case "machineMetrics": {
        const request = requests.get(message.id)
        if (request !== undefined) Deferred.doneUnsafe(request, Effect.succeed(message.metrics))
      }
    }
  }
  process.on("message", receive)
  // A worker without a parent stops, so that the next parent can use the port.
  process.on("disconnect", () => stop())
  // Only the parent replaces workers, but a terminal that closes signals all of them.
  process.on("SIGHUP", () => undefined)
  process.channel?.unref()
  setInterval(() => send({ type: "beat" }), beatInterval).unref()
  return {
    descriptor: socketDescriptor,
    announces: role === announcing,
    ready: () => send({ type: "ready" }),
    replace: () => send({ type: "replace" }),
    retired: Deferred.await(retired),
    hasParent: () => process.connected,
    end: () => stop(),
    watch: (onStop, onForce) => {
      stop = onStop
      force = onForce
      if (!process.connected) stop()
    },
    registerMetrics: (read) => {
      metrics = read
    },
    sendMetrics,
    metrics: Effect.suspend(() => {
      const id = sent++
      const answer = Deferred.makeUnsafe<string>()
      requests.set(id, answer)
      send({ type: "requestMetrics", id })
      return Deferred.await(answer).pipe(
        Effect.timeoutOption(metricsTimeout),
        Effect.map(Option.getOrUndefined),
        Effect.ensuring(Effect.sync(() => requests.delete(id)))
      )
    })
  }
}

/** Whether the parent has given this process a listening socket. */
const hasSocket = (): boolean => {
  try {
    return fstatSync(socketDescriptor).isSocket()
  } catch {
    return false
  }
}

/**
 * The machine of this process; `undefined` unless the process is a worker. A worker without the descriptors of a parent ends: it could
 * neither listen nor be stopped.
 */
export const machineOfProcess = (): Machine | undefined => {
  const role = process.env[workerVariable]
  if (role === undefined) return undefined
  if (process.send !== undefined && hasSocket()) return makeMachine(role)
  writeSync(
    process.stderr.fd,
    `A worker needs the descriptors of its parent: start the gateway without ${workerVariable}\n`
  )
  // Immediately: Node aborts when it waits for a channel that does not exist.
  return process.exit(1)
}
