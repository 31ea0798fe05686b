/** Keeps the connections of a node server within the configured limits, from the next connection and the next byte on. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import type * as Scope from "effect/Scope"
import type { Server } from "node:http"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { CurrentBufferedBytes } from "../../config/CurrentLimits.ts"
import { monotonicMillis } from "../../domain/time.ts"
import { type Connections, watchConnections } from "./Connections.ts"

const refusedConnections = Metric.counter("gateway_connections_refused_total", {
  description: "Connections that were closed at once because there were too many",
  incremental: true
})

/**
 * How often clients that take nothing are looked for, in milliseconds: an eighth of their time, within these bounds. A client that
 * is refused for want of room tries again after seconds, and finds what this made.
 */
const sweepEvery = (patience: number): number => Math.min(1000, Math.max(20, patience / 8))

/** Looks at the connections until the scope closes. */
export const withinLimits = (connections: Connections): Effect.Effect<void, never, ConfigStore | Scope.Scope> =>
  Effect.gen(function*() {
    const config = yield* ConfigStore
    const clock = yield* Clock.Clock
    const metrics = yield* Effect.context<never>()
    connections.bound({
      connections: () => config.unsafeCurrent().limits.connections,
      bufferedBytes: () => config.unsafeCurrent().limits.buffered_bytes,
      sum: yield* CurrentBufferedBytes,
      now: () => monotonicMillis(clock),
      refused: () => refusedConnections.updateUnsafe(1, metrics)
    })
    const patience = () => config.unsafeCurrent().upstream.timeouts.client * 1000
    yield* Effect.suspend(() => Effect.sleep(sweepEvery(patience()))).pipe(
      Effect.andThen(Effect.sync(() => connections.sweep(monotonicMillis(clock), patience()))),
      Effect.forever,
      Effect.forkScoped
    )
  })

/** The same for a node server of an app's own, which listens later. */
export const limitConnections = (server: Server): Layer.Layer<never, never, ConfigStore> =>
  Layer.effectDiscard(Effect.suspend(() => withinLimits(watchConnections(server))))
