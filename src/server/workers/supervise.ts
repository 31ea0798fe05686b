/**
 * The parent of workers: keeps a number of them on one port, restarts those that end, and replaces them one by one at SIGHUP. It
 * serves nothing itself.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Queue from "effect/Queue"
import * as Runtime from "effect/Runtime"
import * as Schema from "effect/Schema"
import { isatty } from "node:tty"
import { currentVersion } from "../../admin/system/build.ts"
import { nodeName, StoreInvalid } from "../../cluster/store/StoreShape.ts"
import { listenForced } from "../../config/clock/Shutdown.ts"
import type { EnvironmentShape } from "../../config/Environment.ts"
import { storeSettings } from "../../config/storeSettings.ts"
import { inheritedSocket } from "../inheritedSocket.ts"
import { layerLogging } from "../loggers.ts"
import { makeSockets, type WorkerSocket } from "./sockets.ts"
import { makeWorkers, type Worker } from "./Workers.ts"

/** The first worker ended before it served. A worker that exits by itself has printed the reason. */
class WorkerFailed extends Schema.TaggedError<WorkerFailed>()("WorkerFailed", { message: Schema.String }) {
  override readonly [Runtime.errorReported] = !this.message.startsWith("exit code")
}

const needsStore = `Several workers share a store. Name one, or start one worker:
  --store redis://127.0.0.1:6379   (or GATEWAY_STORE_URL, or store.url of the configuration)
  --workers 1                      (one process, without a store)`

/**
 * Milliseconds before a worker is restarted. The pause doubles with each end, and is short again after a worker that ran for
 * `longLife`.
 */
const shortestPause = 500
const longestPause = 30_000
const longLife = 60_000

/** Time for a worker to serve connections that wait, once another worker serves. */
const startPatience = "10 seconds"

/** Maximum length of the base name: a node's name has 64 characters, of which a worker's number needs some. */
const mostInName = 57

/** `undefined` if the new worker serves, else how it ended. */
type Replaced = { readonly ended: string } | undefined

/** One of the places on the port. A worker that takes over a place takes its socket. */
interface Place {
  socket: WorkerSocket | undefined
  worker: Worker | undefined
  /** The worker that starts to replace `worker`. */
  next: Worker | undefined
  /** Requests to replace the worker. */
  readonly replacements: Queue.Queue<Deferred.Deferred<Replaced>>
}

const makePlace = Effect.map(Queue.unbounded<Deferred.Deferred<Replaced>>(), (replacements): Place => ({
  socket: undefined,
  worker: undefined,
  next: undefined,
  replacements
}))

const isServing = (worker: Worker | undefined): worker is Worker =>
  worker !== undefined && worker.isReady && !worker.hasEnded

/** The workers of a place that have not ended. */
const workersIn = ({ next, worker }: Place): ReadonlyArray<Worker> =>
  [worker, next].filter((each) => each !== undefined && !each.hasEnded) as ReadonlyArray<Worker>

/** Calls `replace` at SIGHUP, or `gone` if the terminal has closed. */
const watchHangUps = (replace: () => void, gone: () => void) => {
  const hadTerminal = isatty(0)
  const listener = () => hadTerminal && !isatty(0) ? gone() : replace()
  return Effect.acquireRelease(
    Effect.sync(() => process.on("SIGHUP", listener)),
    () => Effect.sync(() => process.off("SIGHUP", listener))
  )
}

const superviseWith = Effect.fnUntraced(function*(
  environment: EnvironmentShape,
  name: string,
  variables: Readonly<Record<string, string>>
) {
  if ((yield* storeSettings(environment, currentVersion)) === undefined) {
    return yield* new StoreInvalid({ message: needsStore })
  }
  const forced = yield* listenForced
  const { host, port } = environment
  const sockets = yield* makeSockets({ port, host, descriptor: yield* inheritedSocket })
  const places = yield* Effect.all(Array.from({ length: environment.workers }, () => makePlace))
  const fork = yield* FiberSet.makeRuntime<never, void, never>()
  /** Sockets that receive connections: a worker has listened on them. */
  const listening = new WeakSet<WorkerSocket>()

  /**
   * Closes the sockets in which connections wait and no worker accepts, while others do: the system would give it their share of the
   * connections. A worker that starts there holds the socket too, and ends with it. The last socket stays open, so that connections
   * wait instead of being refused.
   */
  const closeUnserved = (some: ReadonlyArray<Place>) => {
    const serving = places.flatMap(workersIn).filter(isServing)
    for (const place of some) {
      const { socket } = place
      if (socket === undefined || !listening.has(socket) || serving.length === 0) continue
      if (serving.some((worker) => worker.socket === socket)) continue
      for (const worker of workersIn(place)) worker.kill()
      sockets.close(socket)
      place.socket = undefined
    }
  }

  const workers = yield* makeWorkers(name, variables, {
    onReady: ({ socket }) => {
      if (socket !== undefined) listening.add(socket)
      // Workers that start at the same time are about to serve the connections that wait for them.
      fork(Effect.delay(Effect.sync(() => closeUnserved(places)), startPatience))
    },
    onEnd: ({ socket }) => closeUnserved(places.filter((place) => place.socket === socket)),
    onReplace: (worker) => {
      const place = places.find((each) => each.worker === worker)
      if (place !== undefined) Queue.offerUnsafe(place.replacements, Deferred.makeUnsafe())
    }
  })
  const begin = (place: Place) => workers.begin(() => place.socket ??= sockets.open())

  /** Starts another worker in the place, and retires its worker when that one serves. Returns how a new worker ended instead. */
  const replace = Effect.fnUntraced(function*(place: Place) {
    for (;;) {
      const next = place.next = yield* begin(place)
      const failed = yield* next.serves
      place.next = undefined
      if (failed === undefined) {
        place.worker?.send({ type: "retire" })
        place.worker = next
      }
      // A worker that ended with its socket starts again, on a socket of its own: that one is not closed before it serves.
      if (failed === undefined || next.socket === undefined || next.socket === place.socket) return failed
    }
  })

  /** Keeps a worker in the place. */
  const keep = Effect.fnUntraced(function*(place: Place) {
    let ends = 0
    for (;;) {
      const worker = place.worker ??= yield* begin(place)
      const since = yield* Clock.currentTimeMillis
      const event = yield* Effect.raceFirst(Deferred.await(worker.ended), Queue.take(place.replacements))
      if (typeof event !== "string") {
        yield* Effect.flatMap(replace(place), (failed) => Deferred.succeed(event, failed))
        continue
      }
      place.worker = undefined
      ends = (yield* Clock.currentTimeMillis) - since > longLife ? 1 : ends + 1
      const pause = Math.min(longestPause, shortestPause * 2 ** (ends - 1))
      yield* Effect.logWarning(`Worker ${worker.id} has ended (${event}); the next one starts in ${pause / 1000} s`)
      const asked = yield* Effect.timeoutOption(Queue.take(place.replacements), pause)
      if (asked._tag === "Some") {
        yield* Effect.flatMap(replace(place), (failed) => Deferred.succeed(asked.value, failed))
      }
    }
  })

  const isGone = yield* Deferred.make<void>()
  const wanted = yield* Queue.sliding<void>(1)
  yield* watchHangUps(
    () => Queue.offerUnsafe(wanted, undefined),
    () => Deferred.doneUnsafe(isGone, Effect.void)
  )
  const replaceAll = Effect.gen(function*() {
    yield* Effect.logInfo("Replacing the workers one by one")
    for (const place of places) {
      const replaced = yield* Deferred.make<Replaced>()
      yield* Queue.offer(place.replacements, replaced)
      const failed = yield* Deferred.await(replaced)
      if (failed !== undefined) {
        return yield* Effect.logError(
          `A new worker ended before it served (${failed.ended}); the running workers stay`
        )
      }
    }
    yield* Effect.logInfo("All workers are replaced")
  })

  yield* Effect.addFinalizer(() => workers.stop(forced))
  // The first worker alone reports what is wrong with the configuration or the store.
  const first = places[0]!.worker = yield* begin(places[0]!)
  const failed = yield* first.serves
  if (failed !== undefined) return yield* new WorkerFailed({ message: failed.ended })
  yield* Effect.raceAllFirst([
    Deferred.await(isGone),
    Effect.forever(Effect.andThen(Queue.take(wanted), replaceAll)),
    ...places.map(keep)
  ])
})

/**
 * Runs `environment.workers` workers until it is interrupted, and then drains them. `variables` replace those of the process.
 * Fails without a store, if the port cannot be opened, and if the first worker ends before it serves.
 */
export const supervise = (environment: EnvironmentShape, variables: Readonly<Record<string, string>>) => {
  const name = (environment.nodeId ?? nodeName()).slice(0, mostInName)
  return superviseWith(environment, name, variables).pipe(
    Effect.scoped,
    Effect.annotateLogs({ node: name }),
    Effect.provide([NodeServices.layer, layerLogging(environment.logLevel)])
  )
}
