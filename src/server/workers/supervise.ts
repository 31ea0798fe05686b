/**
 * The parent of workers: keeps a number of them on one port, restarts those that end, and replaces them one by one at SIGHUP. It
 * serves nothing itself.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Runtime from "effect/Runtime"
import * as Schema from "effect/Schema"
import { isatty } from "node:tty"
import { currentVersion } from "../../admin/system/build.ts"
import { nodeName, StoreInvalid } from "../../cluster/store/StoreShape.ts"
import { CurrentForcedShutdown } from "../../config/clock/Shutdown.ts"
import type { EnvironmentShape } from "../../config/Environment.ts"
import { storeSettings } from "../../config/storeSettings.ts"
import { inheritedSocket } from "../inheritedSocket.ts"
import { layerLogging } from "../loggers.ts"
import { makeSockets, type WorkerSocket } from "./sockets.ts"
import { makeWorkers, type Worker } from "./Workers.ts"

/** The first worker ended before it served. It has printed the reason. */
class WorkerFailed extends Schema.TaggedError<WorkerFailed>()("WorkerFailed", { message: Schema.String }) {
  override readonly [Runtime.errorReported] = false
}

const needsStore = `Several workers share a store. Name one, or start one worker:
  --store redis://127.0.0.1:6379   (or GATEWAY_STORE_URL, or store.url of the configuration)
  --workers 1                      (one process, without a store)`

/** Milliseconds before a worker that ended is started again. They double with each end, and begin anew after a long life. */
const shortestPause = 500
const longestPause = 30_000
const longLife = 60_000

/** Characters of a node's name that the number of a worker leaves. */
const mostInName = 57

/** One of the places on the port. A worker that takes over a place takes its socket. */
interface Place {
  socket: WorkerSocket | undefined
  worker: Worker | undefined
  /** Requests to replace the worker. Completed with whether the new one serves. */
  readonly replacements: Queue.Queue<Deferred.Deferred<boolean>>
}

const makePlace = Effect.map(Queue.unbounded<Deferred.Deferred<boolean>>(), (replacements): Place => ({
  socket: undefined,
  worker: undefined,
  replacements
}))

/** Calls `replace` at each SIGHUP, or `gone` if it tells that the terminal is gone, which ends other programs too. */
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
  variables: Readonly<Record<string, string>>
) {
  if ((yield* storeSettings(environment, currentVersion)) === undefined) {
    return yield* new StoreInvalid({ message: needsStore })
  }
  const forced = yield* CurrentForcedShutdown
  // A second signal forces the shutdown if the first one finds a listener.
  yield* Effect.acquireRelease(
    Effect.sync(() => forced.watch(() => undefined)),
    (unwatch) => Effect.sync(unwatch)
  )
  const { host, nodeId, port } = environment
  const sockets = yield* makeSockets({ port, host, descriptor: yield* inheritedSocket })
  const workers = yield* makeWorkers((nodeId ?? nodeName()).slice(0, mostInName), variables)
  const places = yield* Effect.all(Array.from({ length: environment.workers }, () => makePlace))
  const begin = (place: Place) => workers.begin(place.socket ??= sockets.open())

  /** Starts another worker in the place, and retires its worker when that one serves. */
  const replace = Effect.fnUntraced(function*(place: Place) {
    const next = yield* begin(place)
    const serves = yield* next.serves
    if (serves) {
      place.worker?.tell({ type: "retire" })
      place.worker = next
    }
    return serves
  })

  /** Keeps a worker in the place. */
  const keep = Effect.fnUntraced(function*(place: Place) {
    let ends = 0
    for (;;) {
      const worker = place.worker ??= yield* begin(place)
      const since = yield* Clock.currentTimeMillis
      const event = yield* Effect.raceFirst(Deferred.await(worker.ended), Queue.take(place.replacements))
      if (typeof event !== "string") {
        yield* Effect.flatMap(replace(place), (serves) => Deferred.succeed(event, serves))
        continue
      }
      place.worker = undefined
      ends = (yield* Clock.currentTimeMillis) - since > longLife ? 1 : ends + 1
      const pause = Math.min(longestPause, shortestPause * 2 ** (ends - 1))
      yield* Effect.logWarning(`Worker ${worker.id} has ended (${event}); the next one starts in ${pause / 1000} s`)
      // Connections go to the others. The last socket stays open, so that connections wait instead of being refused.
      if (place.socket !== undefined && places.some(({ worker }) => worker !== undefined)) {
        sockets.close(place.socket)
        place.socket = undefined
      }
      yield* Effect.sleep(pause)
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
      const replaced = yield* Deferred.make<boolean>()
      yield* Queue.offer(place.replacements, replaced)
      if (!(yield* Deferred.await(replaced))) {
        return yield* Effect.logError("A new worker ended before it served; the workers that run stay")
      }
    }
    yield* Effect.logInfo("All workers are replaced")
  })

  yield* Effect.addFinalizer(() => workers.stop(forced))
  // The first worker alone reports what is wrong with the configuration or the store.
  const first = places[0]!.worker = yield* begin(places[0]!)
  if (!(yield* first.serves)) return yield* new WorkerFailed({ message: yield* Deferred.await(first.ended) })
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
export const supervise = (environment: EnvironmentShape, variables: Readonly<Record<string, string>>) =>
  superviseWith(environment, variables).pipe(
    Effect.scoped,
    Effect.annotateLogs({ node: environment.nodeId ?? "parent of the workers" }),
    Effect.provide([NodeServices.layer, layerLogging(environment.logLevel)])
  )
