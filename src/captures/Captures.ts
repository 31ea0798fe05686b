/**
 * Captures: a bounded ring of what went to and came from the upstream, per round.
 */
import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import type { Recorder } from "../upstream/Upstream.ts"

export class Captures extends Context.Service<Captures, {
  /**
   * A recorder for one completion, on the account with this key within the pool; `undefined` while captures are off, so
   * that nothing is done for them.
   */
  readonly recorder: (account: string | undefined) => Recorder | undefined
}>()("model-gateway/captures/Captures") {
  /** No captures at all. */
  static readonly layerNone: Layer.Layer<Captures> = Layer.succeed(Captures, { recorder: () => undefined })
}
