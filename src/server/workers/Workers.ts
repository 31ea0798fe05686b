/**
 * Starts and stops worker processes, and adds their metrics.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { type ChildProcess, spawn } from "node:child_process"
import { isSea } from "node:sea"
import { shareRuns } from "../../config/clock/cooperative.ts"
import { type Shutdown, whenForced } from "../../config/clock/Shutdown.ts"
import { gaugeRule } from "./gaugeRules.ts"
import { announcing, beatInterval, silent, type ToParent, type ToWorker, workerVariable } from "./messages.ts"
import type { WorkerSocket } from "./sockets.ts"
import { countersOf, sumMetrics } from "./sumMetrics.ts"

/** Timeout for the metrics of all workers. */
const measurementTimeout = "1 second"

/** Time for a worker to serve. */
const startTimeout = "2 minutes"

/** Heartbeats that a worker may miss: half a minute. */
const mostMissed = 6

/** Time for workers to end after their drain was forced. */
const killDelay = "10 seconds"

/** A worker process, or a start that failed. */
export class Worker {
  readonly id: string
  readonly process: ChildProcess | undefined
  /** Its listening socket, which its successor may have too. */
  readonly socket: WorkerSocket | undefined
  readonly ready = Deferred.makeUnsafe<void>()
  /** Completes with how the process ended. */
  readonly ended = Deferred.makeUnsafe<string>()
  /** Heartbeats that it has missed. */
  missed = 0
  /** The last metrics that the worker sent. */
  metrics = ""
  /** Completes when the worker has sent its metrics. */
  measured = Deferred.makeUnsafe<void>()

  constructor(id: string, child?: ChildProcess, socket?: WorkerSocket) {
    this.id = id
    this.process = child
    this.socket = socket
  }

  /** Whether it has begun to serve. */
  get isReady(): boolean {
    return Deferred.isDoneUnsafe(this.ready)
  }

  get hasEnded(): boolean {
    return Deferred.isDoneUnsafe(this.ended)
  }

  /** Completes when the worker serves, or with how it ended before. A worker that does neither in time is killed. */
  get serves(): Effect.Effect<{ readonly ended: string } | undefined> {
    return Effect.raceFirst(
      Effect.as(Deferred.await(this.ready), undefined),
      Effect.map(Deferred.await(this.ended), (ended) => ({ ended }))
    ).pipe(
      Effect.timeoutOrElse({
        duration: startTimeout,
        orElse: () =>
          Effect.sync(() => this.kill()).pipe(Effect.as({ ended: `it did not serve within ${startTimeout}` }))
      })
    )
  }

  /** Sends a message. A worker that has just ended receives nothing. */
  send(message: ToWorker): void {
    if (this.process?.connected === true) this.process.send(message, () => undefined)
  }

  kill(): void {
    this.process?.kill("SIGKILL")
  }
}

export interface Workers {
  /** Starts a worker that listens on the socket. A failed start is a worker that has ended. */
  readonly begin: (openSocket: () => WorkerSocket) => Effect.Effect<Worker>
  /** Drains all workers and waits for their end. Ends the drains when the shutdown is forced. */
  readonly stop: (forced: Shutdown) => Effect.Effect<void>
}

/** Arguments with which Node runs this program again. An executable is its own program. */
const program = (): ReadonlyArray<string> => [...process.execArgv, ...(isSea() ? [] : process.argv.slice(1, 2))]

const each = <A>(workers: Iterable<Worker>, effect: (worker: Worker) => Effect.Effect<A>) =>
  Effect.forEach([...workers], effect, { concurrency: "unbounded", discard: true })

/** What the parent does about its workers. */
export interface WorkerEvents {
  /** A worker received a signal. */
  readonly onReplace: (worker: Worker) => void
  readonly onReady: (worker: Worker) => void
  readonly onEnd: (worker: Worker) => void
}

/**
 * The workers `base-1`, `base-2` … with these variables in their environment. Kills workers that miss their heartbeats, or do not
 * serve in time, until the scope closes.
 */
export const makeWorkers = Effect.fnUntraced(function*(
  base: string,
  variables: Readonly<Record<string, string>>,
  { onEnd, onReady, onReplace }: WorkerEvents
) {
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const living = new Set<Worker>()
  /** Counters of the workers that have ended. */
  let endedMetrics = ""
  let started = 0

  const sendToAll = (message: ToWorker) => {
    for (const worker of living) worker.send(message)
  }

  /** Requests the metrics of all workers. If one does not answer, its last ones count. */
  const metrics = yield* shareRuns(
    Effect.gen(function*() {
      const serving = [...living].filter(({ isReady }) => isReady)
      for (const worker of serving) {
        worker.measured = Deferred.makeUnsafe()
        worker.send({ type: "measure" })
      }
      yield* each(serving, ({ ended, measured }) => Effect.raceFirst(Deferred.await(measured), Deferred.await(ended)))
        .pipe(Effect.timeoutOption(measurementTimeout))
      return sumMetrics([...living].map((worker) => worker.metrics), gaugeRule, endedMetrics)
    }),
    0
  )

  const receive = (worker: Worker, message: ToParent) => {
    switch (message.type) {
      case "ready":
        run(Effect.logInfo(`Worker ${worker.id} serves (process ${worker.process?.pid})`))
        Deferred.doneUnsafe(worker.ready, Effect.void)
        return onReady(worker)
      case "beat":
        worker.missed = 0
        return
      case "replace":
        return onReplace(worker)
      case "metrics":
        worker.metrics = message.metrics
        return void Deferred.doneUnsafe(worker.measured, Effect.void)
      case "requestMetrics":
        return void run(
          Effect.map(metrics, (sum) => worker.send({ type: "machineMetrics", id: message.id, metrics: sum }))
        )
    }
  }

  const end = (worker: Worker, how: string) => {
    if (!living.delete(worker)) return
    endedMetrics = countersOf([endedMetrics, worker.metrics])
    Deferred.doneUnsafe(worker.ended, Effect.succeed(how))
    onEnd(worker)
  }

  const start = (id: string, descriptor: number, role: string) =>
    spawn(process.execPath, program(), {
      env: { ...process.env, ...variables, GATEWAY_NODE_ID: id, [workerVariable]: role },
      // The socket is descriptor 4 of the worker (`socketDescriptor`).
      stdio: ["ignore", "inherit", "inherit", "ipc", descriptor]
    })

  // The channel of a stopped or blocked worker stays open. After a pause of the whole machine both sides continue.
  yield* Effect.sync(() => {
    for (const worker of living) if (worker.isReady && ++worker.missed > mostMissed) worker.kill()
  }).pipe(Effect.repeat(Schedule.spaced(beatInterval)), Effect.forkScoped)

  const workers: Workers = {
    begin: (openSocket) =>
      Effect.sync(() => {
        const id = `${base}-${++started}`
        try {
          const socket = openSocket()
          const child = start(id, socket.descriptor, started === 1 ? announcing : silent)
          const worker = new Worker(id, child, socket)
          living.add(worker)
          run(worker.serves)
          child.on("message", (message: ToParent) => receive(worker, message))
          child.on("error", (error) => end(worker, error.message))
          // Follows the last message of the worker.
          child.once("close", (code, signal) => end(worker, signal === null ? `exit code ${code}` : `signal ${signal}`))
          return worker
        } catch (error) {
          const failed = new Worker(id)
          Deferred.doneUnsafe(failed.ended, Effect.succeed(String(error)))
          return failed
        }
      }),
    stop: (forced) => {
      const kill = whenForced(forced).pipe(
        Effect.tap(() => Effect.sync(() => sendToAll({ type: "force" }))),
        Effect.andThen(Effect.sleep(killDelay)),
        Effect.andThen(Effect.sync(() => living.forEach((worker) => worker.kill()))),
        Effect.andThen(Effect.never)
      )
      return Effect.suspend(() => {
        sendToAll({ type: "stop" })
        return Effect.raceFirst(each(living, ({ ended }) => Deferred.await(ended)), kill)
      })
    }
  }
  return workers
})
