/**
 * The worker processes of a parent: their start, their end, and what they count.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import { type ChildProcess, spawn } from "node:child_process"
import { isSea } from "node:sea"
import type { Shutdown } from "../../config/clock/Shutdown.ts"
import { gaugeRule } from "./gaugeRules.ts"
import { announcing, silent, type ToParent, type ToWorker, workerVariable } from "./messages.ts"
import type { WorkerSocket } from "./sockets.ts"
import { countersOf, sumMetrics } from "./sumMetrics.ts"

/** Time for all workers to tell their metrics. */
const measuring = "1 second"

/** Time for workers to end after their drain was forced. */
const ending = "10 seconds"

/** A worker process. */
export class Worker {
  readonly id: string
  readonly process: ChildProcess
  readonly ready = Deferred.makeUnsafe<void>()
  /** Completes with how the process ended. */
  readonly ended = Deferred.makeUnsafe<string>()
  /** The metrics that the worker told last. */
  metrics = ""
  /** Completes when the worker has told its metrics. */
  measured = Deferred.makeUnsafe<void>()

  constructor(id: string, child: ChildProcess) {
    this.id = id
    this.process = child
  }

  /** Completes with true when the worker serves, with false if it ends before. */
  get serves(): Effect.Effect<boolean> {
    return Effect.raceFirst(Effect.as(Deferred.await(this.ready), true), Effect.as(Deferred.await(this.ended), false))
  }

  /** Sends a message. A worker that has just ended receives nothing. */
  tell(message: ToWorker): void {
    if (this.process.connected) this.process.send(message, () => undefined)
  }
}

export interface Workers {
  /** Starts a worker that listens on the socket. */
  readonly begin: (socket: WorkerSocket) => Effect.Effect<Worker>
  /** Drains all workers and waits for their end. Ends the drains when the shutdown is forced. */
  readonly stop: (forced: Shutdown) => Effect.Effect<void>
}

/** Arguments with which Node runs this program again. An executable is its own program. */
const program = (): ReadonlyArray<string> => [...process.execArgv, ...(isSea() ? [] : process.argv.slice(1, 2))]

const each = <A>(workers: Iterable<Worker>, effect: (worker: Worker) => Effect.Effect<A>) =>
  Effect.forEach([...workers], effect, { concurrency: "unbounded", discard: true })

/** The workers `base-1`, `base-2` … with these variables in their environment. */
export const makeWorkers = Effect.fnUntraced(function*(base: string, variables: Readonly<Record<string, string>>) {
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const measuringOne = yield* Semaphore.make(1)
  const living = new Set<Worker>()
  /** Counters of the workers that have ended. */
  let endedMetrics = ""
  let started = 0

  const tellAll = (message: ToWorker) => {
    for (const worker of living) worker.tell(message)
  }

  /** Asks all workers for their metrics. One that does not answer counts with those that it told last. */
  const metrics = Effect.gen(function*() {
    for (const worker of living) worker.measured = Deferred.makeUnsafe()
    tellAll({ type: "measure" })
    yield* each(living, ({ ended, measured }) => Effect.raceFirst(Deferred.await(measured), Deferred.await(ended)))
      .pipe(
        Effect.timeoutOption(measuring)
      )
    return sumMetrics([...living].map((worker) => worker.metrics), gaugeRule, endedMetrics)
  }).pipe(measuringOne.withPermit)

  const receive = (worker: Worker, message: ToParent) => {
    switch (message.type) {
      case "ready":
        run(Effect.logInfo(`Worker ${worker.id} serves (process ${worker.process.pid})`))
        return void Deferred.doneUnsafe(worker.ready, Effect.void)
      case "metrics":
        worker.metrics = message.metrics
        return void Deferred.doneUnsafe(worker.measured, Effect.void)
      case "ask":
        return void run(Effect.map(metrics, (sum) => worker.tell({ type: "measured", id: message.id, metrics: sum })))
    }
  }

  const end = (worker: Worker, how: string) => {
    if (!living.delete(worker)) return
    endedMetrics = countersOf([endedMetrics, worker.metrics])
    Deferred.doneUnsafe(worker.ended, Effect.succeed(how))
  }

  const workers: Workers = {
    begin: ({ descriptor }) =>
      Effect.sync(() => {
        const id = `${base}-${++started}`
        const role = started === 1 ? announcing : silent
        const child = spawn(process.execPath, program(), {
          env: { ...process.env, ...variables, GATEWAY_NODE_ID: id, [workerVariable]: role },
          // The socket is descriptor 4 of the worker (`socketDescriptor`).
          stdio: ["ignore", "inherit", "inherit", "ipc", descriptor]
        })
        const worker = new Worker(id, child)
        living.add(worker)
        child.on("message", (message: ToParent) => receive(worker, message))
        child.once("error", (error) => end(worker, error.message))
        // Follows the last message of the worker.
        child.once("close", (code, signal) => end(worker, signal === null ? `exit code ${code}` : `signal ${signal}`))
        return worker
      }),
    stop: (forced) => {
      const wasForced = Effect.callback<void>((resume) => void forced.watch(() => resume(Effect.void)))
      const kill = wasForced.pipe(
        Effect.tap(() => Effect.sync(() => tellAll({ type: "force" }))),
        Effect.andThen(Effect.sleep(ending)),
        Effect.andThen(Effect.sync(() => living.forEach((worker) => worker.process.kill("SIGKILL")))),
        Effect.andThen(Effect.never)
      )
      return Effect.suspend(() => {
        tellAll({ type: "stop" })
        return Effect.raceFirst(each(living, ({ ended }) => Deferred.await(ended)), kill)
      })
    }
  }
  return workers
})
