/**
 * The attempts of a completion: each starts the reply on a lease, up to its first content, or to the end of a whole reply.
 */
import * as Effect from "effect/Effect"
import * as Pull from "effect/Pull"
import type * as Scope from "effect/Scope"
import type { Lease } from "../accounts/Accounts.ts"
import type { Preference, Stickiness, TurnMemory } from "../accounts/Lease.ts"
import { runCooperatively, startCooperatively } from "../config/clock/cooperative.ts"
import { type Deadlines, withDeadline } from "../config/clock/Deadlines.ts"
import { contractOfStyle } from "../contracts/contractOf.ts"
import { isServer, providerOf } from "../contracts/drivers.ts"
import { catalogueOf } from "../domain/catalogue.ts"
import type { Conversation } from "../domain/Conversation.ts"
import { estimateConversation, estimateCooperatively, isLong } from "../domain/estimateConversation.ts"
import { refusesRequest } from "../domain/failureReasons.ts"
import { outputOf, reads, type Windows, windowsDecide } from "../domain/fits.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import { isMaker, type Maker, mayOpen } from "../domain/makers.ts"
import type { Route, Target } from "../domain/routes.ts"
import { peel, pullOf } from "../domain/stream/transduce.ts"
import type { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import { isWholeFor } from "../domain/VendorFields.ts"
import type { AnswerHeaders, RequestBudget } from "../upstream/budget.ts"
import { type Driver, servingDriver, type SpeaksContracts } from "../upstream/Upstream.ts"
import { attemptOverdue, AttemptWork, progressEvery } from "./Attempt.ts"
import { type AttemptSpan, attemptSpan } from "./attemptSpan.ts"
import { boundsOf, mostOutput, withLimit } from "./bounds.ts"
import { CacheWatch, type CacheWatchOptions } from "./CacheWatch.ts"
import { collectReply } from "./collectReply.ts"
import type { ServedInput } from "./CompletionInput.ts"
import { checkFirst, emptyReply } from "./firstBatch.ts"
import { forgetIgnored, noteIgnored } from "./ignored.ts"
import type { OpenReply } from "./openReply.ts"
import type { SealedCalls } from "./SealedCalls.ts"
import { countPrompt, estimateAtEnd } from "./SentPrompt.ts"
import type { ServerWords } from "./serverWords.ts"
import { makerOf, type ReplyStarter } from "./startReply.ts"
import { preferencesOf, stickinessOf, turnMemoryOf } from "./stickiness.ts"
import { askedByTool, type StrictSchema, strictSchemaOf } from "./strictSchemas.ts"
import { hasOwnTools, judgesChoice, toolChoiceFault } from "./toolPolicy.ts"
import type { Budgeted } from "./TryBudget.ts"
import { changedNames, noteUnsent, withinFacts } from "./unsentFields.ts"

/** How a completion is attempted. */
interface CompletionAttemptOptions<A> {
  readonly startReply: ReplyStarter
  readonly sealed: SealedCalls
  readonly caches: CacheWatchOptions
  readonly deadlines: Deadlines["Service"]
  /** The driver of an upstream in effect. */
  readonly driverOf: (upstream: string) => Driver | undefined
  /** Makes the request's budget, at the first lease. */
  readonly makeBudget: () => RequestBudget
  /** The request's own scope. */
  readonly scope: Scope.Scope
  /** The reply is sent as a whole: nothing is sent before its end, so every failure may be retried. */
  readonly whole: boolean
  /** Makes the result from a reply that has started. */
  readonly output: (reply: OpenReply) => Effect.Effect<A>
}

/** A started reply of an attempt. */
type Begun = Pick<OpenReply, "id" | "first" | "rest" | "isOver" | "isCacheReported">

/** Whether the windows of a route decide where a request goes, so that its tokens are estimated first. */
export const choosesByWindow = ({ config, conversation, model: { targets }, request }: ServedInput): boolean =>
  targets.length > 1 && windowsDecide(catalogueOf(config).windowsOf(targets), conversation, request.bodyChars)

/** The attempts of one completion. */
export class CompletionAttempt<A> extends AttemptWork<Begun, A> {
  readonly caller: ServedInput["caller"]
  readonly request: ServedInput["request"]
  override readonly sticky: Stickiness | undefined
  override readonly prefers: ReadonlyArray<Preference> | undefined
  override readonly memory: TurnMemory
  readonly #input: ServedInput
  readonly #options: CompletionAttemptOptions<A>
  #budget: RequestBudget | undefined
  /** The error by which the gateway refused to send the request to a target. */
  refusal: GatewayError | undefined
  /** A try that failed may be charged, and the strict limits of the key have reserved no second one. */
  #isCharged = false
  #cache: CacheWatch | undefined
  /** An attempt has a strict budget. */
  #isBounded = false
  /** Paths of what the attempt left out of the request. */
  #left: ReadonlyArray<string> = []
  /** The same for what it changed because of what the server refuses, or of what is known of the model. */
  #changed: ReadonlyArray<string> = []

  constructor(input: ServedInput, options: CompletionAttemptOptions<A>) {
    super()
    this.#input = input
    this.#options = options
    this.caller = input.caller
    this.request = input.request
    this.sticky = stickinessOf(input)
    this.prefers = preferencesOf(input, options.sealed)
    this.memory = turnMemoryOf(input, this.sticky)
  }

  get route(): Route {
    return this.#input.model
  }

  canServe(_: Driver, target: Target): boolean {
    const { config, conversation } = this.#input
    const input = catalogueOf(config).ofTarget(target).input?.value
    return input === undefined || reads({ input }, conversation)
  }

  override windowsOf(targets: ReadonlyArray<Target>): Windows {
    return catalogueOf(this.#input.config).windowsOf(targets)
  }

  override get schema(): StrictSchema | undefined {
    return this.#input.conversation.output === undefined ? undefined : strictSchemaOf(this.#input)
  }

  override size(): { readonly prompt: number; readonly output: number } | undefined {
    const { conversation } = this.#input
    return choosesByWindow(this.#input)
      ? { prompt: estimateConversation(conversation), output: outputOf(conversation) }
      : undefined
  }

  refuse(driver: Driver, { model }: Target): GatewayError | undefined {
    return this.#refusedBy(servingDriver(driver, model, this.#input.conversation, this.#options.deadlines.now()), model)
  }

  /** Notes what the driver does not send. Returns the error if it cannot serve the request. */
  #refusedBy(driver: Driver, model: Target["model"]): GatewayError | undefined {
    const { conversation, request } = this.#input
    // Another target takes what the last one did not.
    if (this.#changed.length > 0) forgetIgnored(request.stats, this.#changed)
    this.#changed = []
    const unsent = noteUnsent(conversation, model, driver, request)
    const isJudged = !hasOwnTools(conversation) || judgesChoice(conversation, driver.contract)
    return this.refusal = unsent ?? (isJudged ? undefined : toolChoiceFault(conversation))
  }

  override keepsCode(driver: Driver, { model }: Target): boolean {
    const { conversation } = this.#input
    return isWholeFor(conversation, servingDriver(driver, model, conversation, this.#options.deadlines.now()).contract)
  }

  override span(lease: Lease, target: Target, count: number): Effect.Effect<AttemptSpan, never, Scope.Scope> {
    const { config, conversation, model } = this.#input
    return attemptSpan({
      model,
      conversation,
      provider: providerOf(lease.driver.name, config.upstreams.get(target.upstream)?.server?.vendor),
      accountHash: lease.account?.hash,
      target: config.route_table.showsUpstreams ? { upstream: target.upstream, model: target.model.id } : undefined,
      attempt: count,
      captureContent: config.telemetry.capture_content
    })
  }

  begin(
    lease: Lease,
    target: Target,
    attempt: Scope.Scope,
    most: number
  ): Effect.Effect<Begun, UpstreamFailure | GatewayError, Scope.Scope> {
    const { driver } = lease
    const { contracts } = driver.capabilities
    const begun = contracts === undefined
      ? this.#begin(lease, driver, target, attempt, most)
      : this.#choosing(contracts, lease, target, attempt, most)
    if (this.#input.isStrict !== true) return begun
    return Effect.tapError(begun, (failure) =>
      Effect.sync(() => {
        const isRefused = failure._tag === "GatewayError" || refusesRequest(failure)
        if (this.#budget?.isSent === true && !isRefused) this.#isCharged = true
      }))
  }

  override isSpent(): boolean {
    return this.#isCharged
  }

  budgeted(): Budgeted {
    const input = this.#input
    const { deadlines, driverOf } = this.#options
    const promptTokens = () => estimateConversation(input.conversation)
    return { promptTokens, bounds: (model) => boundsOf(input, model, promptTokens(), driverOf, deadlines.now()) }
  }

  override bounded(): void {
    this.#isBounded = true
  }

  /** Asks by the contract that the driver chooses, and by another one in the same attempt if the server turns out to lack that. */
  #choosing(
    contracts: SpeaksContracts,
    lease: Lease,
    target: Target,
    attempt: Scope.Scope,
    most: number
  ): Effect.Effect<Begun, UpstreamFailure | GatewayError, Scope.Scope> {
    const { driver } = lease
    const { now } = this.#options.deadlines
    const choose = () => servingDriver(driver, target.model, this.#input.conversation, now())
    const before = choose()
    const on = (
      chosen: Driver,
      known: Driver | undefined
    ): Effect.Effect<Begun, UpstreamFailure | GatewayError, Scope.Scope> => {
      const refused = chosen === known ? undefined : this.#refusedBy(chosen, target.model)
      if (refused !== undefined) return Effect.fail(refused)
      const begun = this.#begin(lease, chosen, target, attempt, most)
      return chosen === before || known !== undefined
        ? Effect.catch(begun, (failure) => {
          const other = choose()
          return failure._tag === "GatewayError" || other === chosen ? Effect.fail(failure) : on(other, undefined)
        })
        : begun
    }
    const prepared = Effect.flatMap(lease.credential.token, (token) => contracts.prepare(token, now()))
    return Effect.flatMap(prepared, () => on(choose(), before))
  }

  /** Names what the attempt leaves out of the request, in place of what the attempt before left out. */
  #leaveOut(paths: ReadonlyArray<string>): void {
    const { stats } = this.#input.request
    for (const path of paths) noteIgnored(stats, path)
    this.#left = [...this.#left, ...paths]
  }

  /** Takes back what the attempt before has named. What a driver without seals ignores was noted for its target, in place of the rest. */
  #startNaming({ capabilities: { seals } }: Driver): void {
    if (seals !== undefined) forgetIgnored(this.#input.request.stats, this.#left)
    this.#left = []
  }

  /** The whole conversation for the account of a lease, without what the account cannot open or find. */
  #readable({ capabilities: { seals } }: Driver, model: Target["model"], account: Maker): Conversation {
    const { caller: { owner }, conversation } = this.#input
    const { sealed } = this.#options
    if (seals === undefined) return conversation
    const isForeign = (seal: string): boolean => {
      const maker = sealed.makerOf(owner, seal)
      return maker !== undefined && !mayOpen(maker, account)
    }
    const { continued, seals: found } = conversation.vendorFields ?? {}
    const holder = continued?.heldBy
    if ((holder === undefined || mayOpen(holder, account)) && found?.some(isForeign) !== true) return conversation
    const plain = seals.plain(conversation, model, this.#options.deadlines.now(), isForeign)
    if (plain === undefined) return conversation
    this.#leaveOut(plain.left)
    return plain.conversation
  }

  /** The conversation by the id of the response that it continues, if the server stores that for the account. */
  #byId({ capabilities: { seals } }: Driver, account: Maker): Conversation | undefined {
    const { conversation } = this.#input
    const holder = conversation.vendorFields?.continued?.heldBy
    return holder !== undefined && isMaker(holder, account) ? seals?.byId(conversation) : undefined
  }

  #begin(
    lease: Lease,
    driver: Driver,
    target: Target,
    attempt: Scope.Scope,
    most: number
  ): Effect.Effect<Begun, UpstreamFailure | GatewayError, Scope.Scope> {
    const { model } = target
    const { deadlines, makeBudget, sealed, startReply, whole } = this.#options
    const input = this.#input
    const budget = this.#budget ??= makeBudget()
    budget.isSent = false
    budget.heard = undefined
    budget.statedQuota = undefined
    let produced = 0
    const { caller: { owner }, config: { compat, responses } } = input
    const start = (given: Conversation) => {
      const { stats } = input.request
      budget.isEmpty = true
      const isBounded = input.isStrict === true || this.#isBounded
      const { byTool, changed, conversation } = withinFacts(
        isBounded ? withLimit(given, input.config, target) : given,
        () => catalogueOf(input.config).ofTarget(target),
        contractOfStyle(input.request.style)?.id,
        driver.contract
      )
      const onChanged = (paths: ReadonlyArray<string>) => {
        const names = changedNames(paths, conversation, input.request)
        for (const name of names) noteIgnored(stats, name)
        this.#changed = [...this.#changed, ...names]
      }
      if (changed.length > 0) onChanged(changed)
      stats.sent = conversation
      countPrompt(stats, budget, () => estimateConversation(conversation))
      const leastCached = this.#cache?.least
      const asked = {
        ...input,
        model,
        conversation,
        budget,
        isWhole: whole,
        driver: byTool && input.config.upstreams.get(target.upstream)?.tools !== "prompt"
          ? askedByTool(driver)
          : driver,
        leastCached,
        onChanged,
        stripsMarkers: compat.strip_reference_markers,
        most: isBounded ? mostOutput(input, conversation, driver) : undefined
      }
      const starting = startReply(asked, lease, attempt)
      const estimate = estimateCooperatively(conversation)
      if (isLong(conversation)) {
        return Effect.andThen(estimateAtEnd(attempt, stats, budget, runCooperatively(estimate)), starting)
      }
      // Only declared tools make the estimate of a short prompt long.
      return conversation.tools.length === 0
        ? starting
        : Effect.flatMapEager(startCooperatively(estimate), () => starting)
    }
    const account = makerOf(lease)
    // The server may have ended the reply immediately, at one of the caller's stop sequences.
    const mayBeStopped = input.conversation.stop.length > 0 && driver.sends.stop(input.conversation)
    this.#startNaming(driver)
    const byId = this.#byId(driver, account)
    const readable = byId === undefined ? this.#readable(driver, model, account) : input.conversation
    const restored = sealed.isEmpty(owner) || byId !== undefined
      ? undefined
      : startCooperatively(sealed.restored(owner, readable, responses.store_ttl_seconds * 1000, account))
    const begin = (started: ReturnType<typeof start>) =>
      Effect.flatMap(
        started,
        ({ events, id, isCacheReported, isOver }) =>
          Effect.flatMap(
            Pull.catchDone(peel(events, attempt), () => emptyReply),
            ([batch, rest]) =>
              Effect.flatMapEager(checkFirst(batch, budget.isEmpty && !mayBeStopped), (first) => {
                input.request.stats.firstEventAt = deadlines.now()
                input.request.followers.recording?.progressed()
                return Effect.mapEager(
                  lease.report(undefined, undefined),
                  (): Begun => ({ id, isCacheReported, isOver, first, rest })
                )
              })
          )
      )
    const { seals } = driver.capabilities
    const nothing = () => {}
    /** Asks, and again without what the server refuses: what it cannot read or find, and thinking. */
    const ask = (
      conversation: Conversation,
      begun = begin(start(byId ?? conversation)),
      isPlain = false
    ): ReturnType<typeof begin> =>
      seals === undefined ? begun : Effect.catch(begun, (failure) => {
        if (failure._tag !== "UpstreamFailure") return Effect.fail(failure)
        const isForgotten = byId !== undefined && !isPlain && seals.refused(failure)
        const repeated = seals.repeated(failure, conversation, model, deadlines.now(), isPlain) ??
          (isForgotten ? { conversation, left: [], taken: nothing } : undefined)
        if (repeated === undefined) return Effect.fail(failure)
        this.#leaveOut(repeated.left)
        const again = Effect.map(begin(start(repeated.conversation)), (begun) => {
          repeated.taken(deadlines.now())
          return begun
        })
        return isPlain ? again : ask(repeated.conversation, again, true)
      })
    const first = () =>
      restored === undefined ? ask(readable) : Effect.flatMap(restored, (conversation) => ask(conversation))
    const begun = withDeadline(
      this.#watching(lease, driver, target, first),
      deadlines,
      most,
      attemptOverdue,
      // Output that is not sent, such as hidden reasoning, counts as progress.
      () => {
        const isGrowing = budget.produced > produced
        produced = budget.produced
        return isGrowing ? progressEvery : 0
      }
    )
    if (!whole) return begun
    return Effect.flatMap(
      begun,
      (begun) =>
        Effect.flatMapEager(
          pullOf(begun.rest, attempt),
          (rest) => Effect.mapEager(collectReply(begun.first, rest), (first): Begun => ({ ...begun, first }))
        )
    )
  }

  /** Notes what is expected of the server's cache before the request is sent. */
  #watching<B, E, R>(
    lease: Lease,
    driver: Driver,
    target: Target,
    send: () => Effect.Effect<B, E, R>
  ): Effect.Effect<B, E, R> {
    // Only servers state what a cache had.
    if (!isServer(driver.name)) {
      this.#cache = undefined
      return send()
    }
    const watch = this.#cache === undefined
      ? startCooperatively(CacheWatch.of(this.#input, this.#options.caches, this.memory))
      : Effect.succeed(this.#cache)
    return Effect.flatMapEager(watch, (cache) => {
      this.#cache = cache
      cache.begins(lease, target)
      return send()
    })
  }

  heard(): AnswerHeaders | undefined {
    return this.#budget?.heard
  }

  override statedQuota(): unknown {
    return this.#budget?.statedQuota
  }

  output(
    begun: Begun,
    lease: Lease,
    attempt: Scope.Closeable,
    span: AttemptSpan | undefined,
    words: ServerWords
  ): Effect.Effect<A> {
    return this.#options.output({
      ...begun,
      driver: lease.driver.name,
      cache: this.#cache,
      lease,
      attempt,
      scope: this.#options.scope,
      words,
      request: this.request,
      span
    })
  }
}
