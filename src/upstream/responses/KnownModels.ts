/** How the models of a server are asked: as the configuration says, and as the server's answers have shown. */
import type { ReadThinking } from "../../contracts/responses/seals.ts"
import type { ModelOptions } from "../../contracts/responses/writeRequest.ts"
import type { ThinkingWords } from "../../contracts/shared/serverThinking.ts"
import type { UpstreamModel } from "../../domain/UpstreamModel.ts"
import { LearnedModels } from "../server/LearnedModels.ts"
import type { ServerSettings } from "../server/ServerOptions.ts"

export class KnownModels implements ReadThinking {
  readonly #settings: ServerSettings
  readonly #thinking: ReadonlyMap<string, ThinkingWords | undefined>
  /** Models that have sent their thinking itself, which the server reads then, and those whose thinking it has refused. */
  readonly #thoughts = new LearnedModels()
  readonly #unread = new LearnedModels()

  constructor(settings: ServerSettings) {
    this.#settings = settings
    this.#thinking = new Map(settings.models.map((model) => [model.id, model.thinking]))
  }

  /** The server gets the tools and items of the contract as the caller wrote them. */
  get speaks(): boolean {
    return this.#settings.tools === "native"
  }

  thinkingOf({ id }: UpstreamModel): ThinkingWords | undefined {
    return this.#thinking.get(id)
  }

  isRead(model: UpstreamModel, now: number): boolean {
    return this.#thoughts.has(model, now) && !this.#unread.has(model, now)
  }

  refused(model: UpstreamModel, now: number): void {
    this.#unread.learn(model, now)
  }

  /** The model has sent its thinking itself. `now`: monotonic milliseconds. */
  thinks(model: UpstreamModel, now: number): void {
    this.#thoughts.learn(model, now)
  }

  /** How a model is asked at this moment, in monotonic milliseconds. */
  optionsOf(model: UpstreamModel, now: number): ModelOptions {
    const { fields, historyReasoning, tools } = this.#settings
    const words = this.thinkingOf(model)
    return {
      speaks: this.speaks,
      tools: tools === "prompt" ? "prompt" : "native",
      words,
      seals: words !== "none",
      shows: model.reasoning,
      policy: fields,
      history: historyReasoning,
      readsThinking: this.isRead(model, now)
    }
  }
}
