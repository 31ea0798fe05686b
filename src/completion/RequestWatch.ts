/**
 * Who is told of requests when they are over: logs, metrics and traces.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Tracer from "effect/Tracer"
import type { RequestStats } from "./RequestStats.ts"

/** Watches requests: told of each when it is over, its body included. Must not fail; the default does nothing. */
export interface RequestWatch {
  readonly ended: (stats: RequestStats, span: Tracer.Span | undefined) => Effect.Effect<void>
  /** Whether requests are spans of a trace. */
  readonly traced: boolean
}

export const CurrentRequestWatch = Context.Reference<RequestWatch>("model-gateway/completion/RequestWatch", {
  defaultValue: (): RequestWatch => ({ ended: () => Effect.void, traced: false })
})
