/**
 * The field by which a server reads the most tokens of a reply: `max_tokens` or `max_completion_tokens`.
 *
 * The caller's own field goes to the server, until the server shows that it reads the other one: it refuses the field, as the vendor's newer
 * models do, or it passes over the field and writes more than was asked for, as Ollama does
 * (https://github.com/ollama/ollama/issues/7125).
 */
import type { Sampling } from "../../domain/Conversation.ts"
import type { UpstreamFailure } from "../../domain/UpstreamFailure.ts"

/** The two limits of a request, by the fields that they are sent as. */
const names = { maxTokens: "max_tokens", maxCompletionTokens: "max_completion_tokens" } as const

type Limit = keyof typeof names

/** Models that are remembered. */
const mostModels = 1_000

/** Tokens beyond the limit that servers may count for the end of a reply. */
const slack = 16

/**
 * Servers whose field is known: `max_tokens` is deprecated there, and newer models refuse it
 * (https://platform.openai.com/docs/api-reference/chat/create).
 */
const knownHosts: ReadonlyMap<string, Limit> = new Map([["api.openai.com", "maxCompletionTokens"]])

/** What a refusal says of a field that is not read. */
const unread = /unsupported|not supported|unrecogni[sz]ed|unknown|unexpected|extra |not permitted|not allowed/i

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

  /** Whether a refusal says that the server reads the other field, which is sent from now on. */
  learnsFrom(model: string, sampling: Sampling, { message = "", param, status }: UpstreamFailure): boolean {
    if (status !== 400 && status !== 422) return false
    const sent = this.#sentOf(model, sampling)
    const text = message.slice(0, 300)
    if (sent === undefined || !unread.test(text)) return false
    const field = names[sent]
    if (param?.split(".").at(-1) !== field && !new RegExp(`\\b${field}\\b`).test(text)) return false
    return this.#learn(model, sent === "maxTokens" ? "maxCompletionTokens" : "maxTokens")
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

  /** Learns a field once for each model, so that a server which reads neither is not asked in turn. */
  #learn(model: string, name: Limit): boolean {
    if (this.#learned.has(model) || this.#learned.size >= mostModels) return false
    this.#learned.set(model, name)
    return true
  }
}
