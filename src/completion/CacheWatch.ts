/** What one request expects of the cache of its server, and what comes of it. */
import { crc32 } from "node:zlib"
import type { AccountPool, Lease } from "../accounts/Accounts.ts"
import type { TurnMemory } from "../accounts/Lease.ts"
import type { Threads } from "../accounts/Threads.ts"
import { readThread, threadText } from "../accounts/threadText.ts"
import { cachingOf } from "../contracts/contractOf.ts"
import { catalogueOf } from "../domain/catalogue.ts"
import type { Target } from "../domain/routes.ts"
import type { Cooperative } from "../domain/stream/cooperative.ts"
import type { Usage } from "../domain/units.ts"
import {
  type Answerer,
  type Expectation,
  expectationOf,
  judgeCache,
  type MoveCause,
  type PromptCache,
  type PromptSums,
  sumPrompt,
  type TextMeasure,
  threadOf
} from "../domain/warmth.ts"
import type { ServedInput } from "./CompletionInput.ts"
import { lifetimeIn, sessionKey } from "./stickiness.ts"

const measure: TextMeasure = { sum: crc32, bytes: (text) => Buffer.byteLength(text) }

/** What the watch needs beside the request. */
export interface CacheWatchOptions {
  readonly threads: Threads
  readonly accounts: Pick<AccountPool, "whyNot">
  /** Monotonic milliseconds, and those of Unix time. */
  readonly now: () => number
  readonly unixNow: () => number
}

export class CacheWatch {
  readonly #input: ServedInput
  readonly #options: CacheWatchOptions
  readonly #sums: PromptSums
  readonly #session: string
  /** The accounts on which earlier attempts of the request have failed. */
  readonly #failed = new Set<string>()
  #answerer: Answerer = { upstream: "", model: "", account: "" }
  #expectation: Expectation | undefined
  /** Tokens from which the server keeps a prompt. */
  least = 0

  /** What the turns of the conversation leave to each other. */
  readonly #memory: TurnMemory | undefined

  private constructor(
    input: ServedInput,
    options: CacheWatchOptions,
    memory: TurnMemory | undefined,
    sums: PromptSums
  ) {
    this.#input = input
    this.#memory = memory
    this.#options = options
    this.#sums = sums
    const { caller: { owner }, request: { identity } } = input
    // The beginning of a conversation ends with its first turn.
    const first = Math.min(sums.sums.length - 1, sums.tools + (sums.hasSystem ? 1 : 0))
    this.#session = identity?.session === undefined
      ? `${owner} ${sums.sums[first]} ${sums.ends[first]}`
      : sessionKey(owner, identity.session)
  }

  /** Sums the prompt of a request. */
  static *of(
    input: ServedInput,
    options: CacheWatchOptions,
    memory: TurnMemory | undefined
  ): Cooperative<CacheWatch> {
    return new CacheWatch(input, options, memory, yield* sumPrompt(input.conversation, measure))
  }

  /** Compares the prompt with its session's threads, before it is sent on a lease. */
  begins(lease: Lease, target: Target): void {
    const { upstream } = lease
    const account = lease.account?.hash ?? ""
    const { config } = this.#input
    const { accounts, now, threads } = this.#options
    const entry = config.upstreams.get(upstream)
    const fact = catalogueOf(config).ofTarget(target).prompt_cache_min_tokens?.value
    this.least = entry?.prompt_cache.min_tokens ?? fact ?? cachingOf(entry?.driver ?? "").least
    this.#answerer = { upstream, model: target.model.id, account }
    const last = this.#memory?.last
    const seen = last === undefined ? undefined : readThread(last, this.#behind())
    if (seen !== undefined) threads.add(this.#session, seen)
    this.#expectation = expectationOf(
      this.#sums,
      threads.of(this.#session),
      this.#answerer,
      now(),
      (last) => this.#whyMoved(last, accounts)
    )
    this.#failed.add(account)
  }

  /** How far the monotonic clock is behind Unix time. */
  #behind(): number {
    const { now, unixNow } = this.#options
    return unixNow() - now()
  }

  #whyMoved(last: Answerer, accounts: Pick<AccountPool, "whyNot">): MoveCause {
    const { caller } = this.#input
    const { model, upstream } = this.#answerer
    if (caller._tag === "Managed" && caller.target !== undefined) return "pinned"
    if (last.upstream !== upstream || last.model !== model) return "target"
    const cause = accounts.whyNot(last)
    return cause === "priority" && this.#failed.has(last.account) ? "out" : cause
  }

  /** The reply has its usage; `isReported` if the server has counted what its cache had. Keeps the prompt as the thread's newest one. */
  answered(usage: Usage, isReported: boolean): PromptCache | undefined {
    const expectation = this.#expectation
    const entry = this.#input.config.upstreams.get(this.#answerer.upstream)
    if (expectation === undefined || entry === undefined) return undefined
    const { now, threads } = this.#options
    const { thread: before } = expectation
    const lifetime = lifetimeIn(entry, (usage.details?.cacheWrite1hTokens ?? 0) > 0)
    // A prompt that was read stays for as long as it was written for.
    const kept = before !== undefined && usage.cachedTokens > 0 ? Math.max(lifetime, before.lifetime) : lifetime
    const answered = { ...this.#answerer, at: now(), lifetime: kept, tokens: usage.promptTokens }
    const thread = threadOf(this.#sums, answered)
    threads.keep(this.#session, thread, before)
    if (this.#memory !== undefined) this.#memory.next = () => threadText(thread, this.#behind())
    return judgeCache(expectation, { ...usage, isReported }, this.least)
  }
}
