/**
 * An endpoint that a server has turned out not to have. The server is asked for it again after ten minutes, because it may change while the
 * gateway runs.
 */
import * as Effect from "effect/Effect"
import { lacksEndpoint } from "../../contracts/responses/seals.ts"
import { monotonicMillis } from "../../domain/time.ts"
import type { UpstreamFailure } from "../../domain/UpstreamFailure.ts"

/** Milliseconds for which the endpoint counts as missing. */
const missingFor = 10 * 60_000

export class MissingEndpoint {
  /** Monotonic milliseconds. */
  #until = -Infinity

  /** True while the server is known to lack the endpoint. `now`: monotonic milliseconds. */
  isMissing(now: number): boolean {
    return now < this.#until
  }

  /** The server has turned out to lack the endpoint. `now`: monotonic milliseconds. */
  learn(now: number): void {
    this.#until = now + missingFor
  }

  /** Learns from the failure of a call of the endpoint. */
  watching<A, R>(call: Effect.Effect<A, UpstreamFailure, R>): Effect.Effect<A, UpstreamFailure, R> {
    return Effect.tapError(call, (failure) =>
      lacksEndpoint(failure)
        ? Effect.clockWith((clock) => Effect.sync(() => this.learn(monotonicMillis(clock))))
        : Effect.void)
  }
}
