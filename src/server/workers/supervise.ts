/**
 * The parent of workers: starts nodes as child processes on one port, restarts those that end, and replaces them one by one at
 * SIGHUP. It serves nothing itself.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Runtime from "effect/Runtime"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import { type ChildProcess, spawn } from "node:child_process"
import { isSea } from "node:sea"
import { isatty } from "node:tty"
import { currentVersion } from "../../admin/system/build.ts"
import { nodeName, StoreInvalid } from "../../cluster/store/StoreShape.ts"
import { CurrentForcedShutdown } from "../../config/clock/Shutdown.ts"
import type { EnvironmentShape } from "../../config/Environment.ts"
import { storeSettings } from "../../config/storeSettings.ts"
import { inheritedSocket } from "../inheritedSocket.ts"
import { layerLogging } from "../loggers.ts"
import { gaugeRule } from "./gaugeRules.ts"
import { announcing, silent, type ToParent, type ToWorker, workerVariable } from "./messages.ts"
import { makeSockets, type WorkerSocket } from "./sockets.ts"
import { countersOf, sumMetrics } from "./sumMetrics.ts"

/** The first worker ended before it served. It has printed the reason. */
class WorkerFailed extends Schema.TaggedError<WorkerFailed>()("WorkerFailed", { message: Schema.String }) {
  override readonly [Runtime.errorReported] = false
}

/** Pause before a worker that ended is started again: doubles with each end, and begins anew after a minute of life. */
const shortestPause = 500
const longestPause = 30_000
const longLife = 60_000

/** Time for workers to tell their metrics, and to end after the drain was forced. */
const measuring = "1 second"
const ending = "10 seconds"

class Worker {
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

  tell(message: ToWorker): void {
    // The channel of a worker that has just ended is closed; its end is an event of its own.
    if (this.process.connected) this.process.send(message, () => undefined)
  }
}

/** One of the workers that serve; successors take over its socket. */
interface Place {
  socket: WorkerSocket | undefined
  worker: Worker | undefined
  /** Requests to replace the worker; completed with whether the new one serves. */
  readonly replacements: Queue.Queue<Deferred.Deferred<boolean>>
}

/** Arguments of Node and its program that start this program again. An executable is its own program. */
const program = (): ReadonlyArray<string> => [...process.execArgv, ...(isSea() ? [] : process.argv.slice(1, 2))]

/** Completes at a SIGHUP that an operator has sent; `hungUp` at the one of a terminal that is gone. */
const hangUps = (onReplace: () => void, onGone: () => void) => {
  const hadTerminal = isatty(0)
  return Effect.acquireRelease(
    Effect.sync(() => {
      const listener = () => hadTerminal && !isatty(0) ? onGone() : onReplace()
      process.on("SIGHUP", listener)
      return listener
    }),
    (listener) => Effect.sync(() => process.off("SIGHUP", listener))
  )
}

const needsStore = `Several workers share a store. Name one, or start one worker:
  --store redis://127.0.0.1:6379   (or GATEWAY_STORE_URL, or store.url of the configuration)
  --workers 1                      (one process, without a store)`

/**
 * Runs `environment.workers` workers until it is interrupted, and then drains them. `variables` replace those of the process.
 * Fails without a store, if the port cannot be opened, and if the first worker ends before it serves.
 */
const superviseWith = Effect.fnUntraced(function*(
  environment: EnvironmentShape,
  variables: Readonly<Record<string, string>>
) {
  if ((yield* storeSettings(environment, currentVersion)) === undefined) {
    return yield* new StoreInvalid({ message: needsStore })
  }
  const forced = yield* CurrentForcedShutdown
  // A second signal forces the shutdown where the first one found a listener.
  yield* Effect.acquireRelease(
    Effect.sync(() => forced.watch(() => undefined)),
    (unwatch) => Effect.sync(unwatch)
  )
  const base = (environment.nodeId ?? nodeName()).slice(0, 57)
  const sockets = yield* makeSockets({
    port: environment.port,
    host: environment.host,
    descriptor: yield* inheritedSocket
  })
  const living = new Set<Worker>()
  const measuringOne = yield* Semaphore.make(1)
  /** Counters of the workers that have ended. */
  let endedMetrics = ""
  let started = 0

  /** Asks all workers for their metrics; a worker that does not answer counts with those that it told last. */
  const machineMetrics = Effect.gen(function*() {
    const workers = [...living]
    for (const worker of workers) {
      worker.measured = Deferred.makeUnsafe()
      worker.tell({ type: "measure" })
    }
    yield* Effect.timeoutOption(
      Effect.forEach(
        workers,
        ({ ended, measured }) => Effect.raceFirst(Deferred.await(measured), Deferred.await(ended)),
        {
          concurrency: "unbounded",
          discard: true
        }
      ),
      measuring
    )
    return sumMetrics([...living].map(({ metrics }) => metrics), gaugeRule, endedMetrics)
  }).pipe(measuringOne.withPermit)

  const begin = (place: Place) =>
    Effect.gen(function*() {
      place.socket ??= sockets.open()
      const id = `${base}-${++started}`
      const child = spawn(process.execPath, program(), {
        env: {
          ...process.env,
          ...variables,
          GATEWAY_NODE_ID: id,
          [workerVariable]: started === 1 ? announcing : silent
        },
        stdio: ["ignore", "inherit", "inherit", "ipc", place.socket.descriptor]
      })
      const worker = new Worker(id, child)
      living.add(worker)
      const run = Effect.runForkWith(yield* Effect.context<never>())
      child.on("message", (message: ToParent) => {
        switch (message.type) {
          case "ready":
            run(Effect.logInfo(`Worker ${id} serves (process ${child.pid})`))
            return void Deferred.doneUnsafe(worker.ready, Effect.void)
          case "metrics":
            worker.metrics = message.metrics
            return void Deferred.doneUnsafe(worker.measured, Effect.void)
          case "ask":
            return void run(
              Effect.map(machineMetrics, (metrics) => worker.tell({ type: "measured", id: message.id, metrics }))
            )
        }
      })
      const end = (how: string) => {
        if (!living.delete(worker)) return
        endedMetrics = countersOf([endedMetrics, worker.metrics])
        Deferred.doneUnsafe(worker.ended, Effect.succeed(how))
      }
      child.once("error", (error) => end(error.message))
      // The channel closes after the worker's last message was read.
      child.once("close", (code, signal) => end(signal === null ? `exit code ${code}` : `signal ${signal}`))
      return worker
    })

  /** Whether a new worker serves; false if it ended before. */
  const serves = ({ ended, ready }: Worker) =>
    Effect.raceFirst(Effect.as(Deferred.await(ready), true), Effect.as(Deferred.await(ended), false))

  /** Keeps a worker in the place. */
  const keep = (place: Place) =>
    Effect.gen(function*() {
      let ends = 0
      for (;;) {
        const worker = place.worker ??= yield* begin(place)
        const since = yield* Clock.currentTimeMillis
        const event = yield* Effect.raceFirst(
          Effect.map(Deferred.await(worker.ended), (how) => ({ _tag: "Ended" as const, how })),
          Effect.map(Queue.take(place.replacements), (replaced) => ({ _tag: "Replace" as const, replaced }))
        )
        if (event._tag === "Replace") {
          const next = yield* begin(place)
          const served = yield* serves(next)
          if (served) {
            place.worker = next
            worker.tell({ type: "retire" })
          }
          Deferred.doneUnsafe(event.replaced, Effect.succeed(served))
          continue
        }
        place.worker = undefined
        ends = (yield* Clock.currentTimeMillis) - since > longLife ? 1 : ends + 1
        const pause = Math.min(longestPause, shortestPause * 2 ** (ends - 1))
        yield* Effect.logWarning(
          `Worker ${worker.id} has ended (${event.how}); the next one starts in ${pause / 1000} s`
        )
        // Connections go to the others. The last socket stays open, so that connections wait instead of being refused.
        if (places.some(({ worker }) => worker !== undefined) && place.socket !== undefined) {
          sockets.close(place.socket)
          place.socket = undefined
        }
        yield* Effect.sleep(pause)
      }
    })

  const places = yield* Effect.forEach(
    Array.from({ length: environment.workers }),
    () =>
      Effect.map(Queue.unbounded<Deferred.Deferred<boolean>>(), (replacements): Place => ({
        socket: undefined,
        worker: undefined,
        replacements
      }))
  )

  const gone = yield* Deferred.make<void>()
  const wanted = yield* Queue.sliding<void>(1)
  yield* hangUps(() => Queue.offerUnsafe(wanted, undefined), () => Deferred.doneUnsafe(gone, Effect.void))

  /** Replaces the workers one after another. Keeps those that remain if a new one does not serve. */
  const replaceAll = Effect.gen(function*() {
    yield* Effect.logInfo("Replacing the workers one by one")
    for (const place of places) {
      const replaced = yield* Deferred.make<boolean>()
      yield* Queue.offer(place.replacements, replaced)
      if (!(yield* Deferred.await(replaced))) {
        return yield* Effect.logError("A new worker ended before it served; the workers that run stay")
      }
    }
    yield* Effect.logInfo("All workers are replaced")
  })

  yield* Effect.addFinalizer(() =>
    Effect.gen(function*() {
      const force = () => {
        for (const worker of living) worker.tell({ type: "force" })
      }
      const unwatch = forced.watch(force)
      for (const worker of living) worker.tell({ type: "stop" })
      const ended = Effect.forEach([...living], ({ ended }) => Deferred.await(ended), {
        concurrency: "unbounded",
        discard: true
      })
      const late = Effect.callback<void>((resume) => void forced.watch(() => resume(Effect.void))).pipe(
        Effect.andThen(Effect.sleep(ending)),
        Effect.andThen(Effect.sync(() => {
          for (const { process } of living) process.kill("SIGKILL")
        })),
        Effect.andThen(Effect.never)
      )
      yield* Effect.raceFirst(ended, late)
      unwatch()
    })
  )

  const [first] = places
  if (first === undefined) return
  // The first worker alone reports what is wrong with the configuration or the store.
  first.worker = yield* begin(first)
  if (!(yield* serves(first.worker))) {
    return yield* new WorkerFailed({ message: yield* Deferred.await(first.worker.ended) })
  }
  yield* Effect.raceAllFirst([
    Deferred.await(gone),
    Effect.forever(Effect.andThen(Queue.take(wanted), replaceAll)),
    ...places.map(keep)
  ])
})

export const supervise = (environment: EnvironmentShape, variables: Readonly<Record<string, string>>) =>
  superviseWith(environment, variables).pipe(
    Effect.scoped,
    Effect.annotateLogs({ node: environment.nodeId ?? "parent of the workers" }),
    Effect.provide([NodeServices.layer, layerLogging(environment.logLevel)])
  )
