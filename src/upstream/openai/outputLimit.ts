/**
 * The field by which a server reads the most tokens of a reply: `max_tokens` or `max_completion_tokens`.
 *
 * The caller's own field goes to the server, until the server passes over it and writes more than was asked for, as Ollama does
 * (https://github.com/ollama/ollama/issues/7125). A field that the server refuses is one of its `Refusals`.
 */
import type { Sampling } from "../../domain/Conversation.ts"

/** The two limits of a request. */
type Limit = "maxTokens" | "maxCompletionTokens"

/** Models that are remembered. */
const mostModels = 1_000

/** Tokens beyond the limit that servers may count for the end of a reply. */
const slack = 16

/**
 * Servers whose field is known: `max_tokens` is deprecated there, and newer models refuse it
 * (https://platform.openai.com/docs/api-reference/chat/create).
 */
const knownHosts: ReadonlyMap<string, Limit> = new Map([["api.openai.com", "maxCompletionTokens"]])

export class OutputLimit {
  readonly #usual: Limit | undefined
  readonly #learned = new Map<string, Limit>()

  constructor(baseUrl: string) {
    this.#usual = knownHosts.get(URL.parse(baseUrl)?.hostname ?? "")
  }

  /** A request's parameters with its limit in the server's field, by the model's id. */
  said(model: string, sampling: Sampling): Sampling {
    const limit = sampling.maxCompletionTokens ?? sampling.maxTokens
    const name = this.#learned.get(model) ?? this.#usual
    return name === undefined || limit === undefined
      ? sampling
      : { ...sampling, maxCompletionTokens: undefined, maxTokens: undefined, [name]: limit }
  }

  /** Looks at the tokens of a reply: more than its limit says that the server has passed over the field. */
  counted(model: string, sampling: Sampling, tokens: number): void {
    const { maxCompletionTokens = Infinity } = this.said(model, sampling)
    if (tokens <= maxCompletionTokens + slack || this.#sentOf(model, sampling) === undefined) return
    this.#learn(model, "maxTokens")
  }

  /** The one limit that a request is sent with. */
  #sentOf(model: string, sampling: Sampling): Limit | undefined {
    const { maxCompletionTokens, maxTokens } = this.said(model, sampling)
    if (maxCompletionTokens === undefined) return maxTokens === undefined ? undefined : "maxTokens"
    return maxTokens === undefined ? "maxCompletionTokens" : undefined
  }

  /** Learns a field once for each model. */
  #learn(model: string, name: Limit): void {
    if (!this.#learned.has(model) && this.#learned.size < mostModels) this.#learned.set(model, name)
  }
}
