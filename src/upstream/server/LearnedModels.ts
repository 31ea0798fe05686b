/**
 * Models of which a server's answers have shown a fact, such as that it reads their thinking. The fact ends an hour after it was last shown,
 * because a server may change while the gateway runs.
 */
import type { UpstreamModel } from "../../domain/UpstreamModel.ts"

/** Milliseconds for which a fact is known. */
export const knownFor = 3_600_000

/** Models that are remembered; one more takes the place of the one that was shown first. */
const mostModels = 1_000

export class LearnedModels {
  readonly #until = new Map<string, number>()

  /** True while the fact is known of the model. `now`: monotonic milliseconds. */
  has({ id }: Pick<UpstreamModel, "id">, now: number): boolean {
    return now < (this.#until.get(id) ?? -Infinity)
  }

  /** The fact is shown of the model. `now`: monotonic milliseconds. */
  learn({ id }: Pick<UpstreamModel, "id">, now: number): void {
    this.#until.delete(id)
    for (const oldest of this.#until.keys()) {
      if (this.#until.size < mostModels) break
      this.#until.delete(oldest)
    }
    this.#until.set(id, now + knownFor)
  }
}
