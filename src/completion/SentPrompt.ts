/**
 * The tokens of an attempt that has no reply yet. What the upstream got counts, unless it refuses the request: a caller that
 * leaves early uses as much of the upstream as one that waits.
 */
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import type { Usage } from "../domain/ReplyEvent.ts"
import type { RequestBudget } from "../upstream/budget.ts"
import { addBilled, type AnsweringTarget, type RequestStats, type TokensSoFar } from "./RequestStats.ts"

/** The usage of a request whose reply has no tokens. */
export const promptUsage = (tokens: number): Usage => ({
  promptTokens: tokens,
  completionTokens: 0,
  reasoningTokens: 0,
  cachedTokens: 0
})

/** The prompt of one attempt. */
class SentPrompt implements TokensSoFar {
  readonly #budget: Pick<RequestBudget, "isSent">
  readonly #promptTokens: () => number
  readonly #before: TokensSoFar | undefined

  /** `before` are the tokens of earlier attempts, which count until this one is sent. */
  constructor(
    budget: Pick<RequestBudget, "isSent">,
    promptTokens: () => number,
    before: TokensSoFar | undefined
  ) {
    this.#budget = budget
    this.#promptTokens = promptTokens
    this.#before = before
  }

  usage(): Usage | undefined {
    return this.#budget.isSent ? promptUsage(this.#promptTokens()) : this.#before?.usage()
  }

  estimated(): boolean {
    return true
  }

  promptReported(): boolean {
    return false
  }

  get isBilled(): boolean {
    return !this.#budget.isSent && this.#before?.isBilled === true
  }
}

/** Counts the prompt of an attempt from when it is sent. */
export const countPrompt = (
  stats: RequestStats,
  budget: Pick<RequestBudget, "isSent">,
  promptTokens: () => number
): void => {
  stats.soFar = new SentPrompt(budget, promptTokens, stats.soFar)
}

/** A turn is over and is asked again: the server charges it, and the caller sees nothing of it. */
export const asksAgain = (
  stats: RequestStats,
  budget: Pick<RequestBudget, "isSent">,
  target: AnsweringTarget,
  promptTokens: () => number
): void => {
  const usage = stats.soFar?.usage()
  if (usage !== undefined) {
    addBilled(stats, usage, true, target)
    stats.soFar = { usage: () => usage, estimated: () => true, promptReported: () => false, isBilled: true }
  }
  budget.isSent = false
  countPrompt(stats, budget, promptTokens)
}

/**
 * Estimates the prompt's tokens when the scope of an attempt closes, if the request was sent and its tokens are not known otherwise. A long
 * prompt takes many slices of work, and what reads the tokens afterwards is synchronous.
 */
export const estimateAtEnd = (
  attempt: Scope.Scope,
  stats: RequestStats,
  budget: Pick<RequestBudget, "isSent">,
  estimate: Effect.Effect<unknown>
): Effect.Effect<void> =>
  Scope.addFinalizer(
    attempt,
    Effect.suspend(() => {
      const { soFar, usage } = stats
      const isNeeded = usage === undefined && soFar !== undefined && budget.isSent && !soFar.promptReported()
      return isNeeded ? estimate : Effect.void
    })
  )
